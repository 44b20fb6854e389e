"""The catalogue as JSON Schema, made by pydantic: what params take and answers hold.

Records become named components: a reader of the OpenAPI document meets each of them once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from conversations.param_fields import CONVERSATION_ID, Params

Schema = dict[str, Any]

COMPONENTS = "#/components/schemas/"
_REF = COMPONENTS + "{model}"


class Problem(BaseModel):
    """Why a request was refused, in the one shape that all refusals have."""

    code: str = Field(description="For programs; stays the same.")
    detail: str = Field(description="For people.")
    retryable: bool = Field(description="Whether the same request may succeed later.")
    status: int = Field(description="The HTTP status.")
    errors: dict[str, list[str]] = Field({}, description="What is wrong with each field, for the code invalid_params.")
    context: dict[str, Any] = Field({}, description="More, for some codes.")


class Generator(GenerateJsonSchema):
    """pydantic's generator, for JSON as LCM writes it: a field of an answer that is null is left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        # The defaults of params are those of their services, which `of_params` adds.
        return self.generate_inner(schema["schema"])

    def nullable_schema(self, schema: core_schema.NullableSchema) -> Schema:
        if self.mode == "serialization":
            return self.generate_inner(schema["schema"])
        return super().nullable_schema(schema)

    def field_is_required(self, field: Any, total: bool) -> bool:
        if self.mode == "validation":
            return super().field_is_required(field, total)
        inner = field["schema"]
        inner = inner["schema"] if inner["type"] == "default" else inner
        return inner["type"] not in ("nullable", "any")


@cache
def _of_model(params: type[BaseModel]) -> Schema:
    return _untitled(params.model_json_schema(ref_template=_REF, schema_generator=Generator))


def _untitled(schema: Any) -> Any:
    """The schema without pydantic's titles, which repeat the names."""
    if isinstance(schema, dict):
        return {
            name: _untitled(value) for name, value in schema.items() if not (name == "title" and isinstance(value, str))
        }
    return [_untitled(each) for each in schema] if isinstance(schema, list) else schema


def of_params(
    params: type[Params], *, without: Sequence[str] = (), defaults: Mapping[str, Any] | None = None
) -> Schema:
    """The schema of the params as one object, but for those that stand elsewhere."""
    whole = _of_model(params)
    properties = {name: dict(schema) for name, schema in whole["properties"].items() if name not in without}
    for name, default in (defaults or {}).items():
        if name in properties and default is not None:
            properties[name]["default"] = default
    required = [name for name in whole.get("required", ()) if name not in without]
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": required}


@cache
def fields_of(params: type[Params]) -> Mapping[str, Schema]:
    """The schema of each param, complete in itself; none is null, as in a query or on a command line."""
    whole = _of_model(params)
    named = whole.get("$defs", {})
    return {name: _complete(schema, named) for name, schema in whole.get("properties", {}).items()}


def _complete(schema: Schema, named: Mapping[str, Schema]) -> Schema:
    if "$ref" in schema:
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        return {**named[schema["$ref"].removeprefix(COMPONENTS)], **rest}
    if "items" in schema:
        return {**schema, "items": _complete(schema["items"], named)}
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return _complete({**choices[0], **rest}, named)
    return {**schema, "anyOf": choices} if choices else schema


def is_conversation(schema: Schema) -> bool:
    """Whether the param is a conversation's id, for which most faces also take the name of its session."""
    return schema.get("format") == CONVERSATION_ID


def is_bytes(schema: Schema) -> bool:
    return "contentEncoding" in schema


def components_of(models: Sequence[type[BaseModel]], *, with_models: bool = False) -> dict[str, Schema]:
    """The records and enumerations that models are made of, by name; and the models themselves."""
    named = {model.__name__: _of_model(model) for model in models}
    parts = {name: schema for each in named.values() for name, schema in each.get("$defs", {}).items()}
    if with_models:
        for name, schema in named.items():
            parts[name] = {key: value for key, value in schema.items() if key != "$defs"}
    return parts


def of_results(hints: Sequence[Any]) -> tuple[list[Schema], dict[str, Schema]]:
    """The schema of each type of answer, and the records that they are made of, by name."""
    adapters = [(place, "serialization", TypeAdapter(hint)) for place, hint in enumerate(hints)]
    schemas, whole = TypeAdapter.json_schemas(adapters, ref_template=_REF, schema_generator=Generator)  # type: ignore[arg-type]
    return [_untitled(schemas[place, "serialization"]) for place in range(len(hints))], _untitled(
        whole.get("$defs", {})
    )


class FileContent(BaseModel):
    """Bytes as base64."""

    content: str


def envelope(hint: Any, *, paged: bool = False) -> Any:
    """The object that an answer comes in: a list is its `items`, bytes are their `content`."""
    if hint is bytes:
        return FileContent
    if get_origin(hint) in (list, tuple):
        return _list_of(get_args(hint)[0], paged=paged)
    return hint


@cache
def _list_of(record: Any, *, paged: bool) -> type[BaseModel]:
    name = record.__name__.removesuffix("Record") if isinstance(record, type) else "Item"
    if not paged:
        return create_model(f"{name}List", items=(list[record], ...))
    next_cursor: Any = (str | None, Field(None, description="Where the next page begins; left out at the end."))
    return create_model(f"{name}Page", items=(list[record], ...), next_cursor=next_cursor)
