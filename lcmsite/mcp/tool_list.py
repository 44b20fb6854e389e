"""The catalogue as MCP tools, each with a self-contained schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mcp_types import Tool, ToolAnnotations

from lcmsite.catalogue import json_schema
from lcmsite.catalogue.json_schema import Schema
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.types import KeyScope

TOOLS: Mapping[str, Operation] = {each.agent_tool: each for each in CATALOGUE if each.for_agents}

_CONVERSATION_SCHEMA: Schema = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}


# The maximum result size that some tools declare to Claude Code, which otherwise shows 25,000 tokens.
MOST_CHARACTERS = 500_000
# The tools that declare it: those with one of these params, and those whose result is as long as a stored text.
_SIZE_PARAMS = frozenset({"limit", "max_tokens", "token_cap", "budget", "line_count"})
_LONG_ANSWERS = frozenset({"lcm_message", "lcm_describe_range"})


@cache
def tools(*, is_structured: bool = True) -> tuple[Tool, ...]:
    """Return all tools; with `is_structured`, each has a schema of its result."""
    answers, records = json_schema.of_results([json_schema.envelope(each.returns) for each in TOOLS.values()])
    return tuple(
        _build_tool(name, operation, json_schema.self_contained(answer, records) if is_structured else None)
        for (name, operation), answer in zip(TOOLS.items(), answers, strict=True)
    )


def _build_tool(name: str, operation: Operation, answer: Schema | None) -> Tool:
    is_long = name in _LONG_ANSWERS or bool(_SIZE_PARAMS & operation.params.model_fields.keys())
    return Tool(
        name=name,
        description=operation.description,
        input_schema=_params_schema(operation),
        output_schema=answer,
        annotations=ToolAnnotations(
            read_only_hint=operation.scope is KeyScope.READ,
            # No tool of agents changes or removes stored texts.
            destructive_hint=False,
            idempotent_hint=operation.verb != "POST",
            open_world_hint=False,
        ),
        _meta={"anthropic/maxResultSizeChars": MOST_CHARACTERS} if is_long else None,
    )


def _params_schema(operation: Operation) -> Schema:
    whole = json_schema.of_params(operation.params, defaults=operation.defaults)
    for name, schema in json_schema.fields_of(operation.params).items():
        if json_schema.is_conversation(schema):
            words = "The conversation: its number, or its session."
            is_required = name in whole["required"]
            whole["properties"][name] = {
                **_CONVERSATION_SCHEMA,
                "description": words if is_required else f"{words} Default: all of the workspace.",
            }
        elif json_schema.is_conversation(schema.get("items", {})):
            whole["properties"][name]["items"] = _CONVERSATION_SCHEMA
    return json_schema.self_contained(whole, json_schema.components_of([operation.params]))
