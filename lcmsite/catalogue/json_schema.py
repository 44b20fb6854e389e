"""The catalogue as JSON Schema: what goes in, read from the params; what comes out, read from the records' types.

Records become named components, so that a reader of the OpenAPI document meets each of them once.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rest_framework import serializers

from conversations.param_fields import Bytes, JsonObject, MessageId, MessageList, Moment, Overrides, Sha256
from conversations.params import Params
from conversations.policy import conversation_knobs
from conversations.types import NewMessage, NewPart
from lcmsite.catalogue.message_schema import COMPONENTS, NARROWER, NO_NUL, Schema, or_null
from retrieval.params import AsOf, Levels, Share

_INPUTS = (NewMessage, NewPart)
_SCALARS: Mapping[Any, Schema] = {
    Any: {},
    type(None): {"type": "null"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: {"type": "string", "format": "decimal"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
}

_BASE64: Schema = {"type": "string", "contentEncoding": "base64"}
# Said of what comes in alone: what goes out is known to be right, and long.
_BASE64_IN: Schema = {
    **_BASE64,
    "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
_DATE_TIME: Schema = {"type": "string", "format": "date-time"}
_MOMENT: Schema = {"anyOf": [_DATE_TIME, {"type": "string", "format": "date"}]}
_AS_OF: Schema = {
    "anyOf": [
        {"type": "string", "pattern": "^(0|[1-9][0-9]{0,18})$"},
        {"type": "string", "pattern": "^run_[0-9a-zA-Z]{1,70}$"},
        _DATE_TIME,
    ]
}
_SHA256: Schema = {"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"}
_MESSAGE_ID: Schema = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^msg_(0|[1-9][0-9]{0,18})$"}]
}

PROBLEM: Schema = {
    "type": "object",
    "description": "Why a request was refused, in the one shape that all refusals have.",
    "required": ["code", "detail", "retryable", "status"],
    "properties": {
        "code": {"type": "string", "description": "For machines; stays the same."},
        "detail": {"type": "string", "description": "For people."},
        "retryable": {"type": "boolean", "description": "Whether the same request may succeed later."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "errors": {
            "type": "object",
            "description": "What is wrong with each field, for the code invalid_params.",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
        "context": {"type": "object", "description": "More, for some codes."},
    },
}


def of_type(hint: Any) -> Schema:
    """The JSON Schema of a value of this type, as `results.as_json` writes it."""
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_type(each) for each in inner]}
    if origin is Literal:
        return {"enum": list(inner)}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"type": "string", "enum": [member.value for member in hint]}
    if is_dataclass(hint) and isinstance(hint, type):
        return {"$ref": f"#/components/schemas/{hint.__name__}"}
    kind = origin or hint
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return {"type": "object", "additionalProperties": of_type(inner[1]) if inner else {}}
    if isinstance(kind, type) and issubclass(kind, Sequence | frozenset | set):
        return {"type": "array", "items": of_type(inner[0]) if inner else {}}
    raise TypeError(f"{hint!r} has no JSON Schema")


def of_result(hint: Any) -> Schema:
    """The schema of an answer: that of the result, or of the object that its items or its bytes come in."""
    if hint is bytes:
        return {"type": "object", "required": ["content"], "properties": {"content": dict(_BASE64)}}
    if get_origin(hint) in (list, tuple):
        more = {"type": "boolean", "description": "There, and true, where a page ended early by its bytes; ask on."}
        return {"type": "object", "required": ["items"], "properties": {"items": of_type(hint), "more": more}}
    return of_type(hint)


def of_record(record: type) -> Schema:
    """The schema of a record itself. All its fields are always there, but for those that callers may leave out."""
    hints = get_type_hints(record)
    needed = [
        each.name
        for each in fields(record)
        if record not in _INPUTS or (each.default is MISSING and each.default_factory is MISSING)
    ]
    # A dataclass without a docstring is given its signature for one.
    told = record.__doc__ and not record.__doc__.startswith(f"{record.__name__}(")
    narrower = NARROWER.get(record, {})
    return {
        "type": "object",
        **({"description": record.__doc__} if told else {}),
        "required": needed,
        **narrower,
        "properties": {each.name: of_type(hints[each.name]) for each in fields(record)}
        | narrower.get("properties", {}),
    }


def of_field(field: serializers.Field, *, in_query: bool = False) -> Schema:
    """The schema of one param; in a query or a path, where everything is a text, none is null."""
    match field:
        case MessageList():
            either = {"anyOf": [of_type(NewMessage), {"type": "object", "description": "As `format` says."}]}
            schema: Schema = {"type": "array", "minItems": 1, "items": either}
        case Overrides():
            schema = _of_overrides()
        case JsonObject():
            schema = {"type": "object"}
        case Bytes():
            schema = dict(_BASE64_IN)
        case Moment():
            schema = dict(_MOMENT)
        case AsOf():
            schema = dict(_AS_OF)
        case MessageId():
            schema = dict(_MESSAGE_ID)
        case Sha256():
            schema = dict(_SHA256)
        case serializers.ListField():
            schema = _bounded({"type": "array", "items": of_field(field.child)}, maxItems=field.max_length)
        case serializers.BooleanField():
            schema = {"type": "boolean"}
        case serializers.ChoiceField():
            schema = {"type": "string", "enum": list(field.choices)}
        case Levels():
            schema = {"type": "integer", "minimum": field.min_value, "maximum": field.max_value, "not": {"const": 0}}
        case serializers.IntegerField():
            schema = _bounded({"type": "integer"}, minimum=field.min_value, maximum=field.max_value)
        case Share():
            schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
        case serializers.FloatField():
            schema = _bounded({"type": "number"}, minimum=field.min_value, maximum=field.max_value)
        case serializers.CharField():
            least = None if field.allow_blank else 1
            schema = _bounded({"type": "string"}, minLength=least, maxLength=field.max_length) | {"pattern": NO_NUL}
        case _:
            raise TypeError(f"{type(field).__name__} has no JSON Schema")
    return or_null(schema) if field.allow_null and not in_query else schema


def _of_overrides() -> Schema:
    properties = {}
    for name, (knob, kind) in sorted(conversation_knobs().items()):
        low, high = knob.metadata["low"], knob.metadata["high"]
        bounds = {"maxLength": high, "pattern": NO_NUL} if kind is str else {"minimum": low, "maximum": high}
        properties[name] = {**_bounded(dict(_SCALARS[kind]), **bounds), "description": knob.metadata["help"]}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _bounded(schema: Schema, **bounds: str | float | None) -> Schema:
    return {**schema, **{name: bound for name, bound in bounds.items() if bound is not None}}


def of_params(
    params: type[Params], *, without: Sequence[str] = (), defaults: Mapping[str, Any] | None = None
) -> Schema:
    """The schema of the params as one object, but for those that stand elsewhere."""
    told = {name: field for name, field in params.prototype().fields.items() if name not in without}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: described(field, (defaults or {}).get(name)) for name, field in told.items()},
        "required": [name for name, field in told.items() if field.required],
    }


def described(field: serializers.Field, default: Any = None) -> Schema:
    """One param's schema, with what it is for and the value it has when left out."""
    schema = {**of_field(field), "description": str(field.help_text or "")}
    return schema if default is None else {**schema, "default": default}


def components(hints: Sequence[Any]) -> dict[str, Schema]:
    """The records that these types are made of, all the way down, by name."""
    found: dict[str, type] = {}
    for hint in (*hints, *_INPUTS):
        for record in _records(hint):
            if found.setdefault(record.__name__, record) is not record:
                raise TypeError(f"Two records are called {record.__name__}; the schema could name only one.")

    return {"Problem": PROBLEM, **COMPONENTS, **{name: of_record(found[name]) for name in sorted(found)}}


def _records(hint: Any, seen: tuple[Any, ...] = ()) -> Iterator[type]:
    if is_dataclass(hint) and isinstance(hint, type):
        if hint in seen:
            return
        yield hint
        for inner in get_type_hints(hint).values():
            yield from _records(inner, (*seen, hint))
    for inner in get_args(hint):
        yield from _records(inner, seen)
