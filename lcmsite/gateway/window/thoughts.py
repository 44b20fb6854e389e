"""Leave out thinking blocks that a vendor would refuse after a cut. Pure.

A signed thinking block of Anthropic's models is valid only after the exact history after which it was written. So
blocks that were written before the cut are left out; later ones stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.types import Entry, Kind

_THOUGHTS = ("thinking", "redacted_thinking")


def without_thoughts(entries: Sequence[Entry], *, through_seq: int, counter: RequestCounter) -> tuple[Entry, ...]:
    """Return the entries, without thinking blocks of the model up to `through_seq`.

    An entry that has only thinking blocks is left out.
    """
    kept: list[Entry] = []
    for entry in entries:
        is_before = entry.kind is Kind.MODEL and entry.seq is not None and entry.seq <= through_seq
        content = entry.value.get("content")
        if is_before and isinstance(content, list) and any(map(_is_thought, content)):
            rest = [block for block in content if not _is_thought(block)]
            if not rest:
                continue
            value = {**entry.value, "content": rest}
            entry = replace(entry, value=value, text=json.dumps(value), tokens=counter.entry_tokens(value))
        kept.append(entry)
    return tuple(kept)


def _is_thought(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _THOUGHTS
