"""The catalogue as MCP tools, each with a self-contained schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from mcp_types import Tool, ToolAnnotations

from conversations.content.lossless_values import NO_NUL
from conversations.errors import Invalid
from conversations.param_fields import MOST
from conversations.scope import HOW_TO_NAME
from lcmsite.catalogue import json_schema
from lcmsite.catalogue.json_schema import Schema
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.types import KeyScope

TOOLS: Mapping[str, Operation] = {each.agent_tool: each for each in CATALOGUE if each.for_agents}
# Enough to look up what was left out of a context.
READING = ("lcm_grep", "lcm_describe", "lcm_expand", "lcm_expand_range")

_CONVERSATION_SCHEMA: Schema = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}


_SELF_EVIDENT = (("pattern", NO_NUL), ("maximum", MOST), ("additionalProperties", True))

# The maximum result size that some tools declare to Claude Code, which otherwise shows 25,000 tokens.
MOST_CHARACTERS = 500_000
# The tools that declare it: those with one of these params, and those whose result is as long as a stored text.
_SIZE_PARAMS = frozenset({"limit", "max_tokens", "token_cap", "budget", "line_count"})
_LONG_ANSWERS = frozenset({"lcm_message", "lcm_describe_range"})


def chosen_tools(names: str) -> Mapping[str, Operation]:
    """The tools of a comma list, with `reading` for READING; all for an empty list.

    Raises Invalid for an unknown name.
    """
    words = [word for each in names.split(",") if (word := each.strip())]
    chosen = {name for word in words for name in (READING if word == "reading" else (word,))}
    if unknown := sorted(chosen - TOOLS.keys()):
        raise Invalid(
            f"tools: there is no tool {unknown[0][:80]!r}; the tools are {', '.join(TOOLS)}, and reading stands for "
            f"{', '.join(READING)}.",
            code="invalid_params",
        )
    return {name: operation for name, operation in TOOLS.items() if name in chosen} if chosen else TOOLS


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
            is_required = name in whole["required"]
            whole["properties"][name] = {
                **_CONVERSATION_SCHEMA,
                "description": HOW_TO_NAME if is_required else f"{HOW_TO_NAME} Default: all of the workspace.",
            }
        elif json_schema.is_conversation(schema.get("items", {})):
            whole["properties"][name]["items"] = _CONVERSATION_SCHEMA
    return _brief(json_schema.self_contained(whole, json_schema.components_of([operation.params])))


def _brief(schema: Any) -> Any:
    """The schema without what tells a model nothing: each tool costs it tokens.

    These are null, which means the same as no value, and limits that no value of a model exceeds.
    """
    if isinstance(schema, list):
        return [_brief(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    brief = {name: _brief(value) for name, value in schema.items() if (name, value) not in _SELF_EVIDENT}
    choices = [each for each in brief.pop("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        return {**choices[0], **brief}
    return {"anyOf": choices, **brief} if choices else brief
