"""The sources of a summary in one shape: passages of units, each with who said it, when, and how much that counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from compaction.summarizers import page
from compaction.summarizers.base import Source, SourceMessage, SourceSummary
from compaction.summarizers.sentences import Unit, units_of
from compaction.summarizers.text import clean, clip, one_line

# Where an agent works with tools, what the user asked is the thread, and what a tool printed can be had again.
_AGENT_WEIGHTS = {"user": 3.0, "assistant": 1.6, "tool": 0.7}
_CALL_WEIGHT = 1.2
_ERROR_WEIGHT = 1.5
_ERRORS = (
    "error", "exception", "traceback", "failed", "failure", "fatal", "panic", "denied", "refused", "not found",
    "no such", "cannot", "can't", "undefined", "invalid", "timed out", "timeout", "exit code",
)  # fmt: skip

# Where people talk, nobody's words weigh more by role. But what they tell of themselves is what is asked for later,
# and a question mostly returns in its answer.
_OF_ONESELF = 1.25
_QUESTION = 0.8
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Mm]e|[Mm]ine|[Ww]e|[Oo]urs?|us)\b|我|私|僕|俺|나[는의]|저[는의]|내가|제가")

_LONGEST_AUTHOR = 40


@dataclass(frozen=True, slots=True)
class Passage:
    """What stands under one head: a message, or what an older summary tells of one or of many.

    `source` is the place of its source in the request; `hidden` is text that is searched for names but never shown.
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
        return page.head(self.who, self.first_seq, self.last_seq)


def passages_of(sources: Sequence[Source]) -> Iterator[Passage]:
    """The sources, in order, as passages; what has no word in it has no units."""
    with_tools = any(_has_tools(source) for source in sources)
    for index, source in enumerate(sources):
        if isinstance(source, SourceMessage):
            yield _of_message(index, source, with_tools)
        else:
            yield from _of_summary(index, source, with_tools)


def _has_tools(source: Source) -> bool:
    if isinstance(source, SourceMessage):
        return source.role == "tool" or "[tool_call " in source.text
    return page.mentions_tools(source.text)


def _of_message(index: int, message: SourceMessage, with_tools: bool) -> Passage:
    text = clean(message.text)
    units = tuple(units_of(text, prose=message.role != "tool"))
    return Passage(
        source=index,
        first_seq=message.seq,
        last_seq=message.seq,
        who=_who(message),
        day=message.time.date() if message.time is not None else None,
        units=units,
        weights=_weights(units, text, message.role, with_tools),
        hidden="\n".join(unit.hidden for unit in units if unit.hidden),
    )


def _of_summary(index: int, summary: SourceSummary, with_tools: bool) -> Iterator[Passage]:
    """Its own lines with their heads, where it was written by one of ours; else the whole under one head."""
    for entry in page.read(
        clean(summary.text), first_seq=summary.first_seq, last_seq=summary.last_seq, start=summary.earliest_at
    ):
        prose = not entry.who.startswith("tool")
        units = (*units_of(entry.sentences, prose=prose), *units_of(entry.lines, prose=False))
        role = entry.who.split(" ", 1)[0] if entry.who.startswith(("tool", "assistant")) else "user"
        yield Passage(
            source=index,
            first_seq=entry.first_seq,
            last_seq=entry.last_seq,
            who=entry.who,
            day=entry.day,
            units=units,
            weights=_weights(units, f"{entry.sentences}\n{entry.lines}", role, with_tools),
            hidden=entry.names,
        )


def _who(message: SourceMessage) -> str:
    """How the speaker is shown: by the author's own name, else by the role; of a tool, also which."""
    # A name is the caller's: with a colon in it, it could end the head early and pass for something said.
    name = clip(one_line(clean(message.author or message.tool_name).replace(":", " ")), _LONGEST_AUTHOR)
    if message.role == "tool":
        return f"tool {name}".rstrip()
    return name or message.role


def _weights(units: Sequence[Unit], text: str, role: str, with_tools: bool) -> tuple[float, ...]:
    if not with_tools:
        return tuple(map(_weight_in_talk, units))
    usual = _AGENT_WEIGHTS.get(role, 1.0)
    # Looked for in the whole first: most texts have no trouble to tell of, and then no line need be searched.
    lower = text.lower() if role == "tool" else ""
    errors = [mark for mark in _ERRORS if mark in lower]
    if not errors:
        return tuple(_CALL_WEIGHT if unit.is_call else usual for unit in units)
    return tuple(
        _ERROR_WEIGHT if any(mark in lower for mark in errors) else usual
        for lower in (unit.text.lower() for unit in units)
    )


def _weight_in_talk(unit: Unit) -> float:
    weight = _QUESTION if unit.text.endswith(("?", "？")) else 1.0
    return weight * _OF_ONESELF if _FIRST_PERSON.search(unit.text) else weight
