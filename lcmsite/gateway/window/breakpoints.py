"""Count prompt cache breakpoints, and add one after the summaries. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lcmsite.gateway.window.types import Entry

# The vendor refuses a request with more.
MOST_BREAKPOINTS = 4
_KEY = "cache_control"


def count_breakpoints(value: Any) -> int:
    """Count the breakpoints in a value."""
    return len(_find_breakpoints(value))


def breakpoint_behind_summaries(entries: Iterable[Entry], *, elsewhere: int) -> Mapping[str, Any] | None:
    """Return a breakpoint for the summaries; None if the client already uses all.

    Its TTL is the longest of the breakpoints after it: the vendor refuses a shorter TTL before a longer one.
    """
    own = [found for entry in entries for found in _find_breakpoints(entry.value)]
    if elsewhere + len(own) >= MOST_BREAKPOINTS:
        return None
    return next((found for found in own if found.get("ttl") == "1h"), {"type": "ephemeral"})


def _find_breakpoints(value: Any) -> list[Mapping[str, Any]]:
    """Return all breakpoints, unordered; no recursion, as nesting may be deep."""
    found: list[Mapping[str, Any]] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if isinstance(each.get(_KEY), dict):
                found.append(each[_KEY])
            # In a tool's input, `cache_control` is data, not a breakpoint.
            waiting.extend(inner for key, inner in each.items() if key not in (_KEY, "input", "input_schema"))
        elif isinstance(each, list):
            waiting.extend(each)
    return found
