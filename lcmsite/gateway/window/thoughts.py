"""Leave out thoughts that a vendor would refuse behind a cut. Pure.

A signed thought of Anthropic's models is valid only behind the very words that it was written behind: what the model
thought before the cut goes, whole, and what it thinks behind the cut stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.types import Entry, Kind

_THOUGHTS = ("thinking", "redacted_thinking")


def without_thoughts(entries: Sequence[Entry], *, through: int, counter: RequestCounter) -> tuple[Entry, ...]:
    """The entries, those of the model up to a seq without its thoughts.

    One that is nothing else is left out.
    """
    kept: list[Entry] = []
    for entry in entries:
        is_before = entry.kind is Kind.MODEL and entry.seq is not None and entry.seq <= through
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
