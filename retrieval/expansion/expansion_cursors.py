"""Where an expansion stopped, as a text that only we can write: changed or borrowed, it is refused."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import NamedTuple

from retrieval.search.page import read_cursor, write_cursor


class Key(NamedTuple):
    """The place of an item in the order of an expansion: by seq; of summaries that begin there, the widest first.

    A summary's rank is its depth, below zero; a message's is 1, and it has no summary's id.
    """

    seq: int
    rank: int
    summary_id: str = ""


@dataclass(frozen=True)
class Position:
    """The item to go on with, and how much of its content and of its parts has been given."""

    key: Key
    content_offset: int = 0
    parts_offset: int = 0

    @property
    def is_inside(self) -> bool:
        return self.content_offset > 0 or self.parts_offset > 0


@dataclass(frozen=True)
class Request:
    """What a cursor belongs to: a summary, or what a range of messages held at a moment."""

    of: str
    depth: int
    include_messages: bool


def written(request: Request, position: Position) -> str:
    """The cursor for this position in this expansion."""
    place = [*position.key, position.content_offset, position.parts_offset]
    return write_cursor(list(astuple(request)), place, of="expand")


def read(cursor: str, request: Request) -> Position:
    """The position of a cursor of this expansion; Invalid (`bad_cursor`) for any other."""
    seq, rank, summary_id, content_offset, parts_offset = read_cursor(
        cursor,
        list(astuple(request)),
        of="expand",
        mismatch="This cursor belongs to another expansion, asked for otherwise, or what it goes through has changed",
    )
    return Position(Key(seq, rank, summary_id), content_offset, parts_offset)
