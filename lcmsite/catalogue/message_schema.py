"""JSON Schema of the foreign forms of messages, as far as they are read.

Our own form is `NewMessage`. What else a foreign message holds is kept, so the schemas allow it.
"""

from __future__ import annotations

from collections.abc import Mapping

from conversations.content.json_values import NAME_SCHEMA
from conversations.formats import Format, anthropic, openai_responses
from conversations.formats.neutral import PART_TYPES
from conversations.formats.openai_chat import ROLES
from conversations.types import Role
from lcmsite.catalogue.json_schema import COMPONENTS, Schema


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_KEY: Schema = {
    **or_null(NAME_SCHEMA),
    "description": "Your own, unique in the conversation: what has it is stored once.",
}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}

NEUTRAL_MESSAGE: Schema = {
    "type": "object",
    "description": "A message in the neutral form, as `lcm import` reads it and exports write it.",
    "required": ["role"],
    "properties": {
        "role": {"type": "string", "enum": [role.value for role in Role]},
        "content": or_null({"type": "string"}),
        "parts": or_null(
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": {"type": "string", "enum": list(PART_TYPES)}},
                },
            }
        ),
        "author": or_null(NAME_SCHEMA),
        "created_at": or_null({"type": "string", "format": "date-time"}),
        "meta": or_null({"type": "object"}),
        "idempotency_key": _KEY,
        "session_id": or_null({"type": "string"}),
        "seq": or_null({"type": "integer"}),
    },
}

CHAT_MESSAGE: Schema = {
    "type": "object",
    "description": "A message as OpenAI's chat completions API takes it.",
    "required": ["role"],
    "properties": {
        "role": {"type": "string", "enum": list(ROLES)},
        "content": {"anyOf": [{"type": "string"}, _OBJECTS, {"type": "null"}]},
        "name": or_null({"type": "string"}),
        "idempotency_key": _KEY,
        # Each read of one role, and kept as it is of any other.
        "tool_call_id": {"description": "Of a tool's message: the call that it answers, as a text."},
        "tool_calls": {"description": "Of an assistant's message: its calls, as a list of objects."},
    },
}

_BLOCK: Schema = {
    "type": "object",
    "properties": {"type": {"type": ["string", "null"]}},
    "if": {"required": ["type"], "properties": {"type": {"const": "text"}}},
    "then": {"required": ["text"], "properties": {"text": {"type": "string"}}},
}
ANTHROPIC_MESSAGE: Schema = {
    "type": "object",
    "description": "A message as Anthropic's Messages API takes it; one with the role system is a system prompt.",
    "required": ["role", "content"],
    "properties": {
        "role": {"type": "string", "enum": list(anthropic.ROLES)},
        "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": _BLOCK}]},
        "idempotency_key": _KEY,
    },
}

_TEXT_OR_NULL: Schema = or_null({"type": "string"})


def _of_type(told: Schema, *, then: Schema) -> Schema:
    """What holds for what says that it is of such a type: a text, as a pattern says nothing of anything else."""
    return {"if": {"required": ["type"], "properties": {"type": {"type": "string", **told}}}, "then": then}


def _texts(*names: str) -> Schema:
    return {"properties": dict.fromkeys(names, _TEXT_OR_NULL)}


_PIECE: Schema = {
    "type": "object",
    "properties": {"type": _TEXT_OR_NULL},
    "allOf": [
        _of_type({"pattern": "text$"}, then={"required": ["text"], "properties": {"text": {"type": "string"}}}),
        _of_type({"const": "refusal"}, then={"required": ["refusal"], "properties": {"refusal": {"type": "string"}}}),
        _of_type({"const": "input_image"}, then=_texts("image_url")),
        _of_type({"const": "input_file"}, then=_texts("filename", "file_data", "file_url")),
    ],
}
_PIECES: Schema = {"type": "array", "items": _PIECE}
_THOUGHTS: Schema = or_null({"type": "array", "items": {"type": "object", **_texts("text")}})
RESPONSES_ITEM: Schema = {
    "type": "object",
    "description": "An item as OpenAI's Responses API takes and gives it: a message, a thought, a call, a result.",
    "properties": {"type": _TEXT_OR_NULL, "idempotency_key": _KEY},
    "allOf": [
        {
            "if": {"properties": {"type": {"enum": [openai_responses.MESSAGE, "", None]}}},
            "then": {
                "required": ["role", "content"],
                "properties": {
                    "role": {"type": "string", "enum": list(openai_responses.ROLES)},
                    "content": {"anyOf": [{"type": "string"}, _PIECES]},
                },
            },
        },
        _of_type(
            {"const": openai_responses.REASONING},
            then={"properties": {"summary": _THOUGHTS, "content": _THOUGHTS}},
        ),
        _of_type(
            {"pattern": "_output$"},
            then={
                "properties": {
                    **_texts("call_id", "id")["properties"],
                    "output": {"if": {"type": "array"}, "then": _PIECES},
                }
            },
        ),
        _of_type({"pattern": "_call$"}, then=_texts("call_id", "id", "name")),
        _of_type({"enum": list(openai_responses.WITH_ARGUMENTS)}, then=_texts("arguments")),
    ],
}

FORMS: Mapping[str, str] = {
    Format.LCM: "NewMessage",
    Format.NEUTRAL: "NeutralMessage",
    Format.OPENAI_CHAT: "ChatMessage",
    Format.OPENAI_RESPONSES: "ResponsesMessage",
    Format.ANTHROPIC: "AnthropicMessage",
}
FOREIGN: Mapping[str, Schema] = {
    "NeutralMessage": NEUTRAL_MESSAGE,
    "ChatMessage": CHAT_MESSAGE,
    "ResponsesMessage": RESPONSES_ITEM,
    "AnthropicMessage": ANTHROPIC_MESSAGE,
}


def by_form(body: Schema) -> Schema:
    """The body of an append as one of several, each with the messages of its form. Without a form it is LCM's own."""
    return {"oneOf": [_of_form(body, form, name) for form, name in FORMS.items()]}


def _of_form(body: Schema, form: str, name: str) -> Schema:
    told = body["properties"]
    is_own = form == Format.LCM
    described = {"description": told["format"]["description"], **({"default": form} if is_own else {})}
    return {
        **body,
        "title": name.replace("Message", "Messages"),
        "required": body["required"] + ([] if is_own else ["format"]),
        "properties": {
            **told,
            "format": {"type": "string", "enum": [form], **described},
            "messages": {**told["messages"], "items": {"$ref": f"{COMPONENTS}{name}"}},
        },
    }
