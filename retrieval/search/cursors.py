"""Where a list was left, as a signed text: changed, or used for another request, it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.signing import BadSignature, Signer

from conversations.errors import Invalid

LONGEST = 4000


def write_cursor(request: str | list[Any], position: Sequence[Any], *, of: str) -> str:
    """The cursor for a position in the list that a request gives; `of`: the operation. Both are JSON values."""
    return Signer(salt=f"lcm.{of}").sign_object([request, *position])


def read_cursor(cursor: str, request: str | list[Any], *, of: str, mismatch: str) -> list[Any]:
    """The position that `write_cursor` wrote for this request; Invalid (`bad_cursor`) for any other cursor.

    `mismatch`: the sentence for a cursor of another request.
    """
    if not isinstance(cursor, str) or len(cursor) > LONGEST:
        raise bad_cursor("This is not a cursor")
    try:
        values: Any = Signer(salt=f"lcm.{of}").unsign_object(cursor)
    except (BadSignature, ValueError) as error:
        # What has a valid signature was written here, so nothing else needs to be checked.
        raise bad_cursor(f"This is not a cursor that {of} gave, or it was changed") from error
    if values[0] != request:
        raise bad_cursor(mismatch)
    return list(values[1:])


def bad_cursor(sentence: str) -> Invalid:
    """The refusal of a cursor."""
    return Invalid(f"{sentence}; begin again without one.", code="bad_cursor")
