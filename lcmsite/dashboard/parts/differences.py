"""The before and after of a repair step as diff lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from conversations.humanize import words
from lcmsite.dashboard.parts.marked_text import Line

# Maximum number of lines shown of a step, which may affect thousands of rows.
MOST_LINES = 120
LONGEST = 400

# The keys of an `after` that contains only the changed rows.
_TONES = {"removed": "out", "added": "in"}
# These columns, the position of a row, are shown first.
_PLACES = frozenset({"ordinal", "seq"})


class Difference(NamedTuple):
    """At most `MOST_LINES` diff lines, and the number of lines left out."""

    lines: list[Line]
    more: int


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """The changes of a step as diff lines."""
    lines = list(_row_lines(before, after) if _TONES.keys() & after.keys() else _value_lines(before, after))
    return Difference(lines[:MOST_LINES], max(0, len(lines) - MOST_LINES))


def _row_lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Line]:
    """The lines of a step whose `after` lists only added and removed rows."""
    for name, value in before.items():
        yield _line("", f"{words(name)}: {_text(value)}")
    for name, tone in _TONES.items():
        shown = after.get(name, [])
        for row in shown:
            yield _line(tone, _text(row))
        if (more := after.get(f"{name}_count", 0) - len(shown)) > 0:
            yield _line("heading", f"… and {more:,} more {words(name)}")


def _value_lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Line]:
    for name in [*before, *(name for name in after if name not in before)]:
        was, will_be = before.get(name), after.get(name)
        if name in before and name in after and was == will_be:
            yield _line("", f"{words(name)}: {_text(was)}")
        elif isinstance(was, list) and isinstance(will_be, list):
            yield _line("heading", f"{words(name)}: {len(was):,} → {len(will_be):,}")
            yield from (_line("" if each in will_be else "out", _text(each)) for each in was)
            yield from (_line("in", _text(each)) for each in will_be if each not in was)
        else:
            if name in before:
                yield _line("out", f"{words(name)}: {_text(was)}")
            if name in after:
                values = will_be if isinstance(will_be, list) and will_be else [will_be]
                yield from (_line("in", f"{words(name)}: {_text(each)}") for each in values)


def _line(tone: str, text: str) -> Line:
    sign = {"in": "+ ", "out": "- ", "heading": ""}.get(tone, "  ")
    return Line(text=sign + (text if len(text) <= LONGEST else text[:LONGEST] + "…"), tone=tone)


def _text(value: Any) -> str:
    match value:
        case None:
            return "nothing yet"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case Mapping():
            in_order = sorted(value.items(), key=lambda item: item[0] not in _PLACES)
            return " · ".join(f"{words(name)} {_text(each)}" for name, each in in_order)
        case list():
            return ", ".join(map(_text, value)) or "none"
        case _:
            return str(value)
