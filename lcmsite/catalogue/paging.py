"""Paging of lists: `limit` and `cursor` in, `items` and `next_cursor` out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from conversations.store.cursors import read_cursor, write_cursor

T = TypeVar("T")
_REFUSAL = "This is not a cursor of this list with these params, or it was changed"


class Page(list[T]):
    """The rows of one page; `cursor_of` makes the cursor that continues after a row."""

    def __init__(self, rows: Iterable[T], *, cursor_of: Callable[[T], str], more: bool) -> None:
        super().__init__(rows)
        self.cursor_of = cursor_of
        self.more = more

    @property
    def next_cursor(self) -> str | None:
        return self.cursor_of(self[-1]) if self.more and self else None

    def first(self, count: int) -> Page[T]:
        """The first `count` rows as a page; its cursor continues after them."""
        return Page(self[:count], cursor_of=self.cursor_of, more=self.more or count < len(self))


@dataclass(frozen=True)
class Paging:
    """How a list continues: the method takes the last row's `key` as `argument`.

    If the method returns a record that holds the list (`is_of_record`), `key` is a field of the record, None on the
    last page, and the record's `next_cursor` is set.
    """

    argument: str
    key: str
    is_of_record: bool = False
    # Set by the operation, so that other lists refuse its cursors.
    salt: str = field(default="", kw_only=True)

    def cursor(self, value: Any, request: str) -> str:
        """Write the cursor of a row, valid only for this request."""
        return write_cursor(value if isinstance(value, list) else [value], of=self.salt, request=request)

    def arguments(self, values: Mapping[str, Any], request: str) -> dict[str, Any]:
        """Replace the cursor by the service's argument; Invalid if it is not valid."""
        arguments = dict(values)
        cursor = arguments.pop("cursor", None)
        if cursor is not None:
            position = read_cursor(cursor, of=self.salt, request=request, refusal=_REFUSAL)
            arguments[self.argument] = position if len(position) > 1 else position[0]
        return arguments

    def page(self, method: Callable[..., Any], values: Mapping[str, Any], *, limit: int, request: str) -> Any:
        """Call the method and return one page: a `Page`, or a record with its cursor."""
        arguments = self.arguments(values, request)
        if self.is_of_record:
            record = method(**arguments, limit=limit)
            position = getattr(record, self.key)
            return replace(record, next_cursor=None if position is None else self.cursor(position, request))
        # One extra row shows whether there are more; some lists end a page early to limit its bytes.
        found = method(**arguments, limit=limit + 1)
        more = len(found) > limit or getattr(found, "more", False)
        return Page(found[:limit], cursor_of=lambda row: self.cursor(getattr(row, self.key), request), more=more)
