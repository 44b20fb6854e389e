"""Messages in LCM's own JSON form: the fields of `NewMessage` and `NewPart`, read strictly and fast. Pure.

This is the hot path of every append, so it is written by hand: no serializer, one dictionary look-up a field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from conversations.fast.records import record
from conversations.formats.fields import noun_of
from conversations.types import NewMessage, NewPart, PartType, Role


class Misfit(ValueError):
    """What is wrong in a message, and where: `path` leads there from the message."""

    def __init__(self, path: str, sentence: str) -> None:
        super().__init__(f"{path}: {sentence}" if path else sentence)
        self.path = path
        self.sentence = sentence


def from_native(row: Any) -> NewMessage:
    """The message that this JSON object describes; Misfit, a ValueError, says what does not belong and where."""
    if type(row) is not dict:
        raise Misfit("", f"A message is an object, not {noun_of(row)}.")
    if not row.keys() <= _MESSAGE_FIELDS:
        raise _unknown("", row, _MESSAGE_FIELDS)
    if row.get("author") is not None and row.get("name") is not None:
        raise Misfit("name", "This is another word for author; give one of them.")
    parts = _optional(row, "parts", _list) or ()
    content = _optional(row, "content", _text)
    if content is None and not parts:
        raise Misfit("content", "A message needs content or parts.")
    return NewMessage(
        role=_role(row.get("role")),
        content=content,
        parts=tuple([_part(part, place) for place, part in enumerate(parts)]),
        author=_optional(row, "author", _text) or _optional(row, "name", _text),
        created_at=_optional(row, "created_at", _moment),
        idempotency_key=_optional(row, "idempotency_key", _text),
        metadata=_optional(row, "metadata", _object) or {},
    )


def _role(value: Any) -> Role:
    role = _ROLES.get(value) if type(value) is str else None
    if role is None:
        raise Misfit("role", f"{_shown(value)} is none of {', '.join(_ROLES)}.")
    return role


def _part(row: Any, place: int) -> NewPart:
    where = f"parts[{place}]"
    if type(row) is not dict:
        raise Misfit(where, f"A part is an object, not {noun_of(row)}.")
    given = row.get("part_type")
    part_type = _PART_TYPES.get(given) if type(given) is str else None
    if part_type is None:
        raise Misfit(f"{where}.part_type", f"{_shown(given)} is none of {', '.join(_PART_TYPES)}.")
    values: dict[str, Any] = {}
    for name, value in row.items():
        check = _COLUMNS.get(name)
        if check is None:
            raise _unknown(where, row, _COLUMNS)
        if value is not None:
            try:
                values[name] = check(value)
            except ValueError as wrong:
                raise Misfit(f"{where}.{name}", str(wrong)) from None
    values["part_type"] = part_type
    return record(NewPart, values)


def _optional(row: Mapping[str, Any], name: str, check: Callable[[Any], Any]) -> Any:
    value = row.get(name)
    if value is None:
        return None
    try:
        return check(value)
    except ValueError as wrong:
        raise Misfit(name, str(wrong)) from None


def _unknown(where: str, row: Mapping[str, Any], known: Any) -> Misfit:
    name = next(name for name in row if name not in known)
    return Misfit(f"{where}.{name[:80]}".lstrip("."), f"There is no such field; those are {', '.join(sorted(known))}.")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"This must be a text, not {noun_of(value)}.")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"This must be true or false, not {noun_of(value)}.")
    return value


def _whole_number(value: Any) -> int:
    if type(value) is float and value.is_integer() and abs(value) < 2**53:
        # JSON knows one kind of number: to many a writer, 7.0 is 7.
        return int(value)
    if type(value) is not int:
        raise ValueError(f"This must be a whole number, not {value if type(value) is float else noun_of(value)}.")
    return value


def _price(value: Any) -> Decimal:
    """A price as a number, or, for one that must keep its digits, as a text."""
    if type(value) not in (int, float, str):
        raise ValueError(f"This must be a number, not {noun_of(value)}.")
    try:
        price = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{_shown(value)} is not a number.") from None
    if not price.is_finite():
        raise ValueError(f"{_shown(value)} is not a number.")
    return price


def _moment(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(value))
    except ValueError:
        raise ValueError(f"{_shown(value)} is not a time in ISO 8601, such as 2026-01-31T12:00:00Z.") from None
    if moment.tzinfo is None:
        raise ValueError("The time needs its zone, such as a Z at its end.")
    return moment


def _object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise ValueError(f"This must be an object, not {noun_of(value)}.")
    return value


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ValueError(f"This must be a list, not {noun_of(value)}.")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple([_text(each) for each in _list(value)])


def _anything(value: Any) -> Any:
    return value


def _shown(value: Any) -> str:
    return repr(value)[:80] if isinstance(value, str | int | float) else noun_of(value)


_ROLES = {role.value: role for role in Role}
_PART_TYPES = {part_type.value: part_type for part_type in PartType}
_MESSAGE_FIELDS = frozenset(NewMessage.__dataclass_fields__) | {"name"}
_TYPED: dict[str, Callable[[Any], Any]] = {
    "part_type": _anything,
    "tool_input": _anything,
    "metadata": _anything,
    "patch_files": _texts,
    "step_cost": _price,
    "step_tokens_in": _whole_number,
    "step_tokens_out": _whole_number,
    "is_ignored": _flag,
    "is_synthetic": _flag,
    "compaction_auto": _flag,
}
_COLUMNS: dict[str, Callable[[Any], Any]] = {name: _TYPED.get(name, _text) for name in NewPart.__dataclass_fields__}
