"""Where an expansion stopped, as a text that only we can write: changed or borrowed, it is refused."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from django.core.signing import BadSignature, Signer

from conversations.errors import Invalid

_SIGNER = "lcm.expand"
LONGEST = 4000


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
    key, content_offset, parts_offset = position.key, position.content_offset, position.parts_offset
    return Signer(salt=_SIGNER).sign_object([*astuple(request), *key, content_offset, parts_offset])


def read(cursor: str, request: Request) -> Position:
    """The position that a cursor of this expansion stands for; Invalid (`bad_cursor`) for any other."""
    if not isinstance(cursor, str) or len(cursor) > LONGEST:
        raise bad("This is not a cursor")
    try:
        values: Any = Signer(salt=_SIGNER).unsign_object(cursor)
    except (BadSignature, ValueError) as error:
        # A signature that holds is over what `written` wrote, so nothing else needs to be checked.
        raise bad("This is not a cursor that expand gave, or it was changed") from error
    *asked, seq, rank, summary_id, content_offset, parts_offset = values
    if asked != list(astuple(request)):
        raise bad("This cursor belongs to another expansion, asked for otherwise, or what it goes through has changed")
    return Position(Key(seq, rank, summary_id), content_offset, parts_offset)


def bad(what: str) -> Invalid:
    """The refusal of a cursor."""
    return Invalid(f"{what}; begin again without one.", code="bad_cursor")
