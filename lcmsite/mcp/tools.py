"""The catalogue as a list of tools: names, descriptions and schemas, each schema complete in itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from mcp_types import Tool, ToolAnnotations
from rest_framework import serializers

from conversations.param_fields import ConversationId
from lcmsite.catalogue import json_schema
from lcmsite.catalogue.message_schema import Schema
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.types import KeyScope

TOOLS: Mapping[str, Operation] = {each.for_agents: each for each in CATALOGUE if each.for_agents}

_SHARED = "#/components/schemas/"
_OWN = "#/$defs/"
_CONVERSATION: Schema = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}


@cache
def tools() -> tuple[Tool, ...]:
    """Every tool, as agents are told of it."""
    return tuple(_tool(name, operation) for name, operation in TOOLS.items())


def _tool(name: str, operation: Operation) -> Tool:
    return Tool(
        name=name,
        description=operation.description,
        input_schema=_of_params(operation),
        output_schema=_alone(json_schema.of_result(operation.returns), operation.returns),
        annotations=ToolAnnotations(
            read_only_hint=operation.scope is KeyScope.READ,
            # Nothing that was said is ever changed or removed.
            destructive_hint=False,
            idempotent_hint=operation.verb != "POST",
            open_world_hint=False,
        ),
    )


def _of_params(operation: Operation) -> Schema:
    told = json_schema.of_params(operation.params, defaults=operation.defaults)
    for name, field in operation.params.prototype().fields.items():
        if isinstance(field, ConversationId):
            words = "The conversation: its number, or its session."
            told["properties"][name] = {
                **_CONVERSATION,
                "description": words if field.required else f"{words} Without it, all of the workspace.",
            }
        elif isinstance(field, serializers.ListField) and isinstance(field.child, ConversationId):
            told["properties"][name]["items"] = _CONVERSATION
    return _alone(told)


def _alone(told: Schema, *hints: Any) -> Schema:
    """The schema with the records that it names: a tool's schema has no document around it."""
    known = json_schema.components(hints)
    if "$ref" in told:
        # A tool's schema is an object in so many words.
        told = known[told["$ref"].removeprefix(_SHARED)]
    named: dict[str, Schema] = {}
    waiting = [told]
    while waiting:
        for name in _names(waiting.pop()):
            if name not in named:
                named[name] = known[name]
                waiting.append(known[name])
    whole = {"type": "object", **told, **({"$defs": named} if named else {})}
    alone: Schema = json.loads(json.dumps(whole).replace(_SHARED, _OWN))
    return alone


def _names(told: Any) -> list[str]:
    if isinstance(told, dict):
        own = [told["$ref"].removeprefix(_SHARED)] if isinstance(told.get("$ref"), str) else []
        return own + [name for value in told.values() for name in _names(value)]
    return [name for value in told for name in _names(value)] if isinstance(told, list) else []
