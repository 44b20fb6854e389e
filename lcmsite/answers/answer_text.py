"""Write any record as a few lines, without empty fields and hashes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import singledispatch
from typing import Any

from compaction.summarizing.extractive.clean_text import one_line
from conversations.humanize import words
from lcmsite.catalogue.paging import Page


def span(item: Any) -> str:
    """The range of seqs that a record covers, such as "3-9", or "3" for one."""
    return str(item.first_seq) if item.first_seq == item.last_seq else f"{item.first_seq}-{item.last_seq}"


def minute(moment: datetime) -> str:
    """The time in UTC, to the minute."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def period(first: datetime, last: datetime) -> str:
    """The range between two times; if both are on one day, it is written once."""
    begin, end = minute(first), minute(last)
    if begin == end:
        return begin
    return f"{begin} to {end.partition(' ')[2] if begin[:10] == end[:10] else end}"


def joined(pieces: Iterable[str | None]) -> str:
    """The non-empty pieces in one line, separated by commas."""
    return ", ".join(one_line(each) for each in pieces if each)


def lines(pieces: Iterable[str | None]) -> str:
    """The non-empty pieces, one per line."""
    return "\n".join(each for each in pieces if each)


def cursor_line(cursor: str | None) -> str:
    """A line with the cursor of the next page; "" without a next page."""
    return f"More: the same with cursor {cursor}" if cursor else ""


@singledispatch
def text_of(answer: Any) -> str:
    """The answer as text for a model."""
    return as_fields(answer) if is_dataclass(answer) else _value(answer)


@text_of.register
def _(page: list) -> str:
    shown = lines(map(_item, page)) or "Nothing."
    return lines((shown, cursor_line(page.next_cursor) if isinstance(page, Page) else ""))


def as_fields(record: Any, *, without: Collection[str] = ()) -> str:
    """A line for each non-empty field of a record, except hashes and `without`."""
    found = []
    for name, value in _shown_fields(record, without).items():
        if is_list_of_records(value):
            found += [f"{words(name)}:", *(f"- {_item(each)}" for each in value)]
        elif isinstance(value, str) and "\n" in value:
            found.append(f"{words(name)}:\n{value}")
        else:
            found.append(f"{words(name)}: {_value(value)}")
    return lines(found)


def _item(value: Any) -> str:
    if not is_dataclass(value):
        return _value(value)
    has_own = text_of.dispatch(type(value)) is not text_of.dispatch(object)
    return text_of(value) if has_own else _in_one_line(value)


def _in_one_line(record: Any) -> str:
    return one_line("; ".join(f"{words(name)} {_value(value)}" for name, value in _shown_fields(record).items()))


def _value(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.2f}"
        case datetime():
            return minute(value)
        case Mapping():
            return json.dumps(dict(value), ensure_ascii=False, default=str)
    if is_dataclass(value):
        return f"({_in_one_line(value)})"
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str):
        return ", ".join(map(_item, value))
    return str(value)


def _shown_fields(record: Any, without: Collection[str] = ()) -> dict[str, Any]:
    values = {each.name: getattr(record, each.name) for each in fields(record) if each.name not in without}
    return {name: value for name, value in values.items() if not (_is_empty(value) or name.endswith("_hash"))}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | Sequence | Mapping) and len(value) == 0)


def is_list_of_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and is_dataclass(value[0])
