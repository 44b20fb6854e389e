"""Logs: how many lines of each level, and how they begin and end. Pure."""

from __future__ import annotations

import re
from collections import Counter

from conversations.files.exploration.bounds import Deadline, cut, number
from conversations.files.exploration.glance import Seen

SHOWN_LINES = 5
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|PANIC)\b", re.IGNORECASE)
_TIME = re.compile(r"\W{0,2}(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\w{3} [ \d]\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d)")
_ORDER = ("TRACE", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL")
_SAME = {"WARN": "WARNING", "FATAL": "CRITICAL", "PANIC": "CRITICAL"}
# Where in a line a level is looked for.
LEVEL_WITHIN = 120


def looks_like_log(text: str) -> bool:
    """Whether most of the first lines begin with a time, or name a level of severity in capitals."""
    lines = [line[:LEVEL_WITHIN] for line in text[:20_000].split("\n")[:50] if line.strip()]
    if len(lines) < 3:
        return False
    like = sum(bool(_TIME.match(line) or ((found := _LEVEL.search(line)) and found[0].isupper())) for line in lines)
    return like > len(lines) / 2


def explore_log(seen: Seen, deadline: Deadline) -> list[str]:
    lines = (seen.text or "").split("\n")
    lines = lines if seen.is_whole else lines[:-1]
    counts: Counter[str] = Counter()
    first_error = ""
    for line in lines:
        found = _LEVEL.search(line[:LEVEL_WITHIN])
        if found:
            level = found[0].upper()
            level = _SAME.get(level, level)
            counts[level] += 1
            if not first_error and level in ("ERROR", "CRITICAL"):
                first_error = line
        if deadline.is_over:
            break
    of = "" if seen.is_whole else f" (in the first {number(len(lines), 'line')})"
    levels = ", ".join(f"{level} {counts[level]:,}" for level in _ORDER if counts[level])
    told = [f"levels{of}: {levels}"] if levels else []
    if first_error:
        told.append(f"first error: {cut(first_error)}")
    return told + beginning_and_end(seen, SHOWN_LINES)


def beginning_and_end(seen: Seen, count: int) -> list[str]:
    """The first and the last lines, and how many there are between."""
    first = [line for line in (seen.text or "").split("\n") if line.strip()]
    if seen.is_whole and len(first) <= 2 * count:
        return [cut(line) for line in first]
    last = [line for line in seen.ending.split("\n")[0 if seen.is_whole else 1 :] if line.strip()] or [seen.ending]
    between = max(seen.lines - 2 * count, 0)
    gap = f"… {number(between, 'line')} …" if between else "…"
    return [*(cut(line) for line in first[:count]), gap, *(cut(line) for line in last[-count:])]
