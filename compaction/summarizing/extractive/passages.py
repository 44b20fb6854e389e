"""Turn messages and summaries into passages of weighted units."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compaction.summarizing.extractive import summary_form
from compaction.summarizing.extractive.clean_text import clean, clip, one_line
from compaction.summarizing.extractive.sentences import Unit, units_of
from compaction.summarizing.extractive.summary_form import Passage
from compaction.summarizing.summarizer import Source, SourceMessage, SourceSummary

_LONGEST_AUTHOR = 40

# Weights by role if an agent works with tools: the user's requests matter most, and tool output can be read again.
_AT_WORK: Mapping[str, float] = {"user": 3.0, "assistant": 1.6, "tool": 0.7}
_CALL = 1.2
_ERROR = 1.5
_ERRORS = (
    "error", "exception", "traceback", "failed", "failure", "fatal", "panic", "denied", "refused", "not found",
    "no such", "cannot", "can't", "undefined", "invalid", "timed out", "timeout", "exit code",
)  # fmt: skip

# In a talk without tools, all roles have the same weight. But statements of people about themselves are searched for
# most often later. Questions matter less, because the answer mostly repeats the question.
_OF_ONESELF = 1.25
_QUESTION = 0.8
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Mm]e|[Mm]ine|[Ww]e|[Oo]urs?|us)\b|我|私|僕|俺|나[는의]|저[는의]|내가|제가")

# Two people write about equally much. An assistant whose messages are more than twice as long as the user's is a
# machine: its answers can be generated again, but the user's reports cannot.
_MACHINE_RATIO = 2.0
_MACHINE = 0.5


def passages_of(sources: Sequence[Source]) -> Iterator[Passage]:
    """Yield the sources, in order, as passages; a passage without words has no units."""
    weights = Weights.for_sources(sources)
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
    """Yield a passage for each head of an extractive summary, or one for the text."""
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
    """Return the speaker: the author's name or the role; both for a tool."""
    # Names are untrusted: a colon would end the head early, and the rest would look like content.
    name = clip(one_line(clean(message.author).replace(":", " ")), _LONGEST_AUTHOR)
    if message.role == "tool":
        return f"tool {name}".rstrip()
    return name or message.role


@dataclass(frozen=True)
class Weights:
    """The weights for one request: those of work with tools, or those of talk."""

    at_work: bool
    assistant_in_talk: float

    @classmethod
    def for_sources(cls, sources: Sequence[Source]) -> Weights:
        at_work = any(_has_tools(source) for source in sources)
        written = {role: _mean_length(sources, role) for role in ("user", "assistant")}
        answers = written["assistant"] > _MACHINE_RATIO * written["user"] > 0
        return cls(at_work=at_work, assistant_in_talk=_MACHINE if answers else 1.0)

    def of(self, units: Sequence[Unit], *, text: str, role: str) -> tuple[float, ...]:
        """Return the weight of each unit of a text."""
        if not self.at_work:
            usual = self.assistant_in_talk if role == "assistant" else 1.0
            return tuple(usual * _in_talk(unit) for unit in units)
        usual = _AT_WORK.get(role, 1.0)
        # The whole text is searched first: most have no error, so that their lines need not be searched.
        lower = text.lower() if role == "tool" else ""
        errors = [mark for mark in _ERRORS if mark in lower]
        if not errors:
            return tuple(_CALL if unit.is_call else usual for unit in units)
        return tuple(
            _ERROR if any(mark in line for mark in errors) else usual for line in (unit.text.lower() for unit in units)
        )


def _in_talk(unit: Unit) -> float:
    weight = _QUESTION if unit.text.endswith(("?", "？")) else 1.0
    return weight * _OF_ONESELF if _FIRST_PERSON.search(unit.text) else weight


def _has_tools(source: Source) -> bool:
    if isinstance(source, SourceMessage):
        return source.role == "tool" or "[tool_call " in source.text
    return summary_form.mentions_tools(source.text)


def _mean_length(sources: Sequence[Source], role: str) -> float:
    lengths = [len(source.text) for source in sources if isinstance(source, SourceMessage) and source.role == role]
    return sum(lengths) / len(lengths) if lengths else 0.0
