"""The sources of a summary in one shape: passages of units, each with who said it, when, and how much that counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from compaction.summarizing.extractive import summary_form
from compaction.summarizing.extractive.clean_text import clean, clip, one_line
from compaction.summarizing.extractive.sentences import Unit, units_of
from compaction.summarizing.extractive.weights import Weights
from compaction.summarizing.summarizer import Source, SourceMessage, SourceSummary

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
        return summary_form.head(self.who, self.first_seq, self.last_seq)


def passages_of(sources: Sequence[Source]) -> Iterator[Passage]:
    """The sources, in order, as passages; what has no word in it has no units."""
    weights = Weights.suiting(sources)
    for index, source in enumerate(sources):
        if isinstance(source, SourceMessage):
            yield _of_message(index, source, weights)
        else:
            yield from _of_summary(index, source, weights)


def _of_message(index: int, message: SourceMessage, weights: Weights) -> Passage:
    text = clean(message.text)
    units = tuple(units_of(text, prose=message.role != "tool"))
    return Passage(
        source=index,
        first_seq=message.seq,
        last_seq=message.seq,
        who=_who(message),
        day=message.time.date() if message.time is not None else None,
        units=units,
        weights=weights.of(units, text=text, role=message.role),
        hidden="\n".join(unit.hidden for unit in units if unit.hidden),
    )


def _of_summary(index: int, summary: SourceSummary, weights: Weights) -> Iterator[Passage]:
    """Its own lines with their heads, where it was written by one of ours; else the whole under one head."""
    for entry in summary_form.read(
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
            weights=weights.of(units, text=f"{entry.sentences}\n{entry.lines}", role=role),
            hidden=entry.names,
        )


def _who(message: SourceMessage) -> str:
    """How the speaker is shown: by the author's own name, else by the role; of a tool, also which."""
    # A name is the caller's: with a colon in it, it could end the head early and pass for something said.
    name = clip(one_line(clean(message.author or message.tool_name).replace(":", " ")), _LONGEST_AUTHOR)
    if message.role == "tool":
        return f"tool {name}".rstrip()
    return name or message.role
