"""LCM's own JSON form: the fields of `NewMessage` and `NewPart`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from conversations.types import NewMessage, NewPart

# For these, null means absent.
_NOT_NULL = ("parts", "metadata", "name")
MESSAGE_FIELDS = frozenset(each.name for each in fields(NewMessage)) | {"name"}
PART_FIELDS = frozenset(each.name for each in fields(NewPart))


def as_fields(row: Any) -> Any:
    """Rename and drop keys of a JSON object so that they are fields of `NewMessage`."""
    if type(row) is not dict:
        return row
    if any(row.get(name, ()) is None for name in _NOT_NULL):
        row = {name: value for name, value in row.items() if value is not None or name not in _NOT_NULL}
    if "name" in row and row.get("author") is None:
        row = {**row, "author": row["name"]}
        del row["name"]
    if row.get("content") is None and not row.get("parts"):
        raise ValueError("A message needs content or parts.")
    return row


_ADAPTER: TypeAdapter[NewMessage] = TypeAdapter(Annotated[NewMessage, BeforeValidator(as_fields)])


def from_native(row: Mapping[str, Any]) -> NewMessage:
    """Return the message of a JSON object; ValueError if it is none."""
    try:
        return _ADAPTER.validate_python(row)
    except ValidationError as wrong:
        raise ValueError(str(wrong)) from None
