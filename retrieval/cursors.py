"""Places to go on from, as a caller holds them: opaque, and of no use for any question but the one they belong to."""

from __future__ import annotations

from typing import Any

from django.core import signing

from conversations.errors import Invalid


def pack(purpose: str, state: Any) -> str:
    return signing.dumps(state, salt=f"lcm.cursor.{purpose}", compress=True)


def unpack(purpose: str, cursor: str) -> Any:
    """What was packed for this purpose; Invalid for anything that we have not packed ourselves."""
    try:
        return signing.loads(cursor, salt=f"lcm.cursor.{purpose}")
    except (signing.BadSignature, ValueError, UnicodeError) as wrong:
        raise Invalid(
            "This cursor was not given for this question; start again without one.", code="bad_cursor"
        ) from wrong
