"""Where a list of matches was left, as a text that only we can write: changed or borrowed, it is refused."""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings
from django.core.signing import BadSignature, Signer

from conversations.errors import Invalid
from retrieval.search.criteria import Criteria

_SIGNER = "lcm.grep"
LONGEST = 4000


class Position(NamedTuple):
    """The key of the last match that was given, how the query was read, and what there was when it was first asked."""

    key: tuple[Any, ...]
    reading: int = 0
    newest: int = 0
    size: int = 0
    at: datetime | None = None


def fingerprint(*, workspace_id: int | None, asked: Criteria, said: tuple[str, ...]) -> str:
    """What tells one search from another, whatever its pages' limits are."""
    # As they stand in a set, they would tell another search in every process.
    criteria = vars(asked) | {"kinds": sorted(asked.kinds)}
    return hashlib.sha256(repr((workspace_id, criteria, said)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def written(search: str, position: Position) -> str:
    """The cursor for this position in this search."""
    at = position.at.isoformat() if position.at is not None else None
    values = [search, list(position.key), position.reading, position.newest, position.size, at]
    return _signer(settings.SECRET_KEY).sign_object(values)


def read(cursor: str, search: str) -> Position:
    """The position that a cursor of this search stands for; Invalid (`bad_cursor`) for any other."""
    if not isinstance(cursor, str) or len(cursor) > LONGEST:
        raise _bad("This is not a cursor")
    try:
        values: Any = Signer(salt=_SIGNER).unsign_object(cursor)
    except (BadSignature, ValueError) as error:
        # A signature that holds is over what `written` wrote, so nothing else needs to be checked.
        raise _bad("This is not a cursor that grep gave, or it was changed") from error
    of, key, reading, newest, size, at = values
    if of != search:
        raise _bad("This cursor belongs to another search; only limit and max_tokens may change from page to page")
    return Position(tuple(key), reading, newest, size, datetime.fromisoformat(at) if at is not None else None)


@lru_cache(maxsize=1)
def _signer(key: str) -> Signer:
    """To sign with: to make one takes a third of the time of a cursor."""
    return Signer(key=key, salt=_SIGNER)


def _bad(what: str) -> Invalid:
    return Invalid(f"{what}; begin again without one.", code="bad_cursor")
