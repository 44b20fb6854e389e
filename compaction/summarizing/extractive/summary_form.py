"""Write a summary with one head for consecutive units of a speaker; parse it.

    March 7
    12-14 user: I moved the ledger to Lisbon. It must be read-only.
    15 assistant: Bash(pytest tests/ledger)
      Edit(src/ledger.py)
    16 tool: FAILED tests/ledger/test_rows.py::test_order
    Also named: src/rows.py, ORDER_BY
    Expand for details about: currency rounding, backup plan (31 of 40 messages).

Text from a conversation never starts a line, so it cannot look like a head, a day or a closing line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import chain, groupby

from compaction.summarizing.extractive.sentences import Unit
from compaction.summarizing.summarizer import Source, SourceSummary

EXPAND = "Expand for details about:"
NAMED = "Also named:"

# Not strftime, which depends on the locale of the machine.
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

_HEADED = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?(?: ([^:]{1,60}))?: (.+)")
_DAY = re.compile(rf"({'|'.join(_MONTHS)}) (\d\d?)(?:, (\d{{4}}))?")
_TOOL_HEAD = re.compile(r"^\d+(?:-\d+)? tool\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Passage:
    """The content under one head: a message, or a part of an older summary.

    `source` is the index of the source in the request. `hidden` is text that is searched for names but never shown.
    """

    source: int
    first_seq: int
    last_seq: int
    who: str
    day: date | None
    units: tuple[Unit, ...]
    weights: tuple[float, ...]
    hidden: str = ""

    @property
    def head(self) -> str:
        return head(self.who, self.first_seq, self.last_seq)


# The kept units of one speaker on one day, message by message.
Turns = list[list[Unit]]


def readable(head: str, turns: Turns) -> str:
    """Render sentences one after another, and all other units on their own lines."""
    first, *others = chain.from_iterable(turns)
    text, after_prose = f"{head}: {first.text}", first.is_prose
    for unit in others:
        if unit.is_prose and after_prose:
            # An item of a list, or a title, does not end with a full stop.
            text += f"; {unit.text}" if text[-1].isalnum() else f" {unit.text}"
        else:
            text += f"\n  {unit.text}"
        after_prose = unit.is_prose
    return text


def write(
    kept: Iterable[tuple[Passage, Unit]], *, days: Mapping[date, str], render: Callable[[str, Turns], str] = readable
) -> str:
    """Write the kept units, in order, under as few heads as possible.

    `days` maps the days to be written to their form, see `days_of`.
    """
    lines: list[str] = []
    shown: date | None = None
    for (who, day, _), pairs in groupby(kept, key=_speaker):
        listed = list(pairs)
        if day is not None and day in days and day != shown:
            lines.append(days[day])
            shown = day
        turns = [[unit for _, unit in of_one] for _, of_one in groupby(listed, key=lambda pair: pair[0].first_seq)]
        lines.append(render(head(who, listed[0][0].first_seq, listed[-1][0].last_seq), turns))
    return "\n".join(lines)


def _speaker(pair: tuple[Passage, Unit]) -> tuple[str, date | None, int]:
    passage = pair[0]
    # Text without a speaker is a model's prose. It is kept apart from the prose of other summaries.
    return passage.who, passage.day, 0 if passage.who else passage.first_seq


def head(who: str, first_seq: int, last_seq: int) -> str:
    """Write a head: the numbers of its messages and their speaker."""
    place = str(first_seq) if first_seq == last_seq else f"{first_seq}-{last_seq}"
    return f"{place} {who}".rstrip()


def closing(topics: Sequence[str], *, left_out: int, sources: Sequence[Source]) -> str:
    """Write the closing line: topics to expand for, and how much was left out."""
    kind = "summaries" if all(isinstance(source, SourceSummary) for source in sources) else "messages"
    extent = f"{left_out} of {len(sources)} {kind}" if left_out else f"{len(sources)} {kind}"
    return f"{EXPAND} {', '.join(topics)} ({extent})." if topics else f"{EXPAND} {extent}."


def with_few_names(text: str, *, most: int, hint: str) -> str:
    """Shorten the list of names in a summary's text to `most` names.

    The `hint` says where to find the others.
    """
    shown = []
    for line in text.split("\n"):
        names = line.split(", ") if line.startswith(NAMED) else []
        more = len(names) - most
        shown.append(line if more <= 0 else f"{', '.join(names[:most])}, and {more} more: {hint}")
    return "\n".join(shown)


def days_of(passages: Sequence[Passage]) -> dict[date, str]:
    """Return the form of each day, with the year if there are several years.

    The result is empty if there is only one day: then the day is not written.
    """
    days = {passage.day for passage in passages if passage.day is not None}
    if len(days) < 2:
        return {}
    has_years = len({day.year for day in days}) > 1
    return {day: f"{_MONTHS[day.month - 1]} {day.day}" + (f", {day.year}" if has_years else "") for day in days}


@dataclass(frozen=True, slots=True)
class Entry:
    """The parsed content under one head of a summary: sentences, lines, names."""

    first_seq: int
    last_seq: int
    who: str
    day: date | None
    sentences: str
    lines: str = ""
    names: str = ""


def mentions_tools(text: str) -> bool:
    """Whether a written summary contains lines of tools."""
    return _TOOL_HEAD.search(text) is not None


def read(text: str, *, first_seq: int, last_seq: int, start: datetime | None) -> Iterator[Entry]:
    """Parse a summary's text into entries.

    The closing line is left out. Lines in another form become one entry together.
    """
    day = first_day = start.date() if start is not None else None
    entry: Entry | None = None
    unheaded: list[str] = []
    names: list[str] = []
    for line in text.split("\n"):
        headed = _HEADED.fullmatch(line)
        label = _DAY.fullmatch(line)
        if line.startswith("Expand for details"):
            continue
        if line.startswith(NAMED):
            names.append(line.removeprefix(NAMED))
        elif label is not None:
            day = _day(label, start) or day
        elif headed is not None and first_seq <= int(headed[1]) <= int(headed[2] or headed[1]) <= last_seq:
            if entry is not None:
                yield entry
            first, last, who, content = headed.groups()
            entry = Entry(int(first), int(last or first), who or "", day, sentences=content)
        elif entry is not None and line.startswith("  "):
            entry = replace(entry, lines=f"{entry.lines}\n{line}")
        else:
            unheaded.append(line)
    if entry is not None:
        yield entry
    if names or any(unheaded):
        yield Entry(first_seq, last_seq, "", first_day, sentences="\n".join(unheaded), names=", ".join(names))


def _day(label: re.Match[str], start: datetime | None) -> date | None:
    month, day, year = label.groups()
    if year is None and start is None:
        return None
    try:
        return date(int(year or start.year), _MONTHS.index(month) + 1, int(day))  # type: ignore[union-attr]
    except ValueError:
        return None
