"""Texts that the protocol's libraries cannot carry, and what stands in for them there.

JSON can say half of a surrogate pair, and agents that cut texts do; the SDK refuses the whole message that holds one.
"""

from __future__ import annotations

import json
from typing import Any

# How JSON begins to say any surrogate, paired or not; in UTF-8 itself there is none.
_SUSPICIOUS = b"\\ud"


def may_hold_surrogates(written: bytes) -> bool:
    """Whether this JSON may hold a lone surrogate; the answer no is certain."""
    return _SUSPICIOUS in written.lower()


def holdable(value: Any) -> Any:
    """The JSON value with a question mark in place of each lone surrogate."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
