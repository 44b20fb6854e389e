"""A summarizer without a model: keeps the sentences that cover most, in order."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from compaction.summarizing.extractive.clean_text import estimate_tokens
from compaction.summarizing.extractive.coverage import Candidate, Coverage, pack
from compaction.summarizing.extractive.material import ROOM_FOR_CLOSING, Material, budget_of, material_of, poor_draft
from compaction.summarizing.extractive.summary_form import NAMED, closing, days_of, write
from compaction.summarizing.extractive.topics import index_of_names, names_left_out, topics_left_out
from compaction.summarizing.summarizer import SourceMessage, SummaryDraft, SummaryRequest

# This share of the budget lists what the kept sentences lack: first names and, with the remaining tokens, phrases in
# the closing line. Measured on the dev set: a smaller share loses names that are needed again, a larger one loses
# sentences.
_LISTED_SHARE = 0.33
_LEAST_CLOSING_SHARE = 0.06
# Below this budget, no names are listed: sentences matter more.
_ROOM_FOR_NAMES = 100

_PARAGRAPH = re.compile(r"\n\s*\n")
MOST_PARAGRAPHS = 200

# Maximum number of tokens of a closing line; models do not read a longer one.
_LONGEST_CLOSING = 100


@dataclass(frozen=True)
class ExtractiveSummarizer:
    """Makes readable, deterministic summaries within the target, at every level."""

    name: str = "extractive"

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        """Return whole sentences under their speakers, a list of names, a closing line."""
        material = material_of(request.sources)
        days = days_of(material.passages)
        return _Writing(request, material, budget_of(request), days).draft(self.name)


@dataclass(frozen=True)
class _Writing:
    """The state while one summary is written."""

    request: SummaryRequest
    material: Material
    budget: int
    days: Mapping[date, str]

    def draft(self, model: str) -> SummaryDraft:
        count, material = self.request.count_tokens, self.material
        names = names_left_out(material)
        names_room, closing_room = self._reserved_rooms(names)
        coverage = self._coverage()
        body = self._pack(coverage, self.budget - names_room - closing_room)
        if names_room and coverage.chosen:
            # The kept sentences contain many of the names, so the tokens reserved for these go to more sentences.
            missing = [name for name in names if self._spelling(name) not in body]
            names_room = min(names_room, self._cost_of_names(missing))
            body = self._pack(coverage, self.budget - names_room - closing_room)
        if not coverage.chosen:
            return poor_draft(self.request, material, self.budget, model=model)
        ending = _Ending(left_out=len(self.request.sources) - len(material.sources_of(coverage.chosen)))
        if names_room:
            room = self.budget - closing_room - count(f"{body}\n{NAMED}")
            ending.names = index_of_names(names, material=material, shown=body, budget=room, count_tokens=count)
        if closing_room:
            ending.topics = []
            ending.topics = topics_left_out(
                material,
                covered=coverage.covered | set(ending.names),
                kept=set(coverage.chosen),
                budget=min(_LONGEST_CLOSING, self.budget - count(self._text(body, ending))),
                count_tokens=count,
            )
        text = self._text(body, ending)
        while (over := count(text) - self.budget) > 0 and ending.shorten(over / self.budget):
            text = self._text(body, ending)
        covered = coverage.covered.union(ending.names, material.vocabulary.known(" ".join(ending.topics or ())))
        return SummaryDraft(text=text, model=model, quality=round(material.share(covered), 4), left_out=ending.left_out)

    def _reserved_rooms(self, names: Sequence[int]) -> tuple[int, int]:
        """Return the tokens reserved for the list of names and for the closing line."""
        if self.budget < ROOM_FOR_CLOSING:
            return 0, 0
        names_room = min(int(_LISTED_SHARE * self.budget), self._cost_of_names(names))
        if self.budget < _ROOM_FOR_NAMES:
            names_room = 0
        closing_room = max(_LEAST_CLOSING_SHARE * self.budget, _LISTED_SHARE * self.budget - names_room)
        return names_room, int(min(_LONGEST_CLOSING, closing_room))

    def _coverage(self) -> Coverage:
        material, count = self.material, self.request.count_tokens
        return Coverage(
            candidates=[
                Candidate(terms, weight, place, estimate_tokens(unit.text))
                for place, unit, weight, terms in material.statements
            ],
            worth=material.worth,
            tokens_of=lambda index: count(f" {material.statements[index].unit.text}"),
            tokens_of_heading=lambda place: estimate_tokens(material.passages[place].head),
        )

    def _pack(self, coverage: Coverage, budget: int) -> str:
        return pack(coverage, render=self._body, count_tokens=self.request.count_tokens, budget=budget)

    def _body(self, chosen: Sequence[int]) -> str:
        passages, statements = self.material.passages, self.material.statements
        kept = ((passages[statements[index].place], statements[index].unit) for index in sorted(chosen))
        return write(kept, days=self.days)

    def _text(self, body: str, ending: _Ending) -> str:
        lines = [body]
        if ending.names:
            lines.append(f"{NAMED} {', '.join(map(self._spelling, ending.names))}")
        if ending.topics is not None:
            lines.append(closing(ending.topics, left_out=ending.left_out, sources=self.request.sources))
        return "\n".join(lines)

    def _spelling(self, name: int) -> str:
        return self.material.vocabulary.spelling[name]

    def _cost_of_names(self, names: Sequence[int]) -> int:
        return math.ceil(sum(estimate_tokens(self._spelling(name)) for name in names))


@dataclass
class _Ending:
    """The lines under the body: names, and topics (None: no closing line)."""

    left_out: int
    names: list[int] = field(default_factory=list)
    topics: list[str] | None = None

    def shorten(self, part: float) -> bool:
        """Shorten by about this share, topics first; return False if nothing is left."""
        for items in (self.topics, self.names):
            if items:
                # At least one item is removed: tokens of parts do not add up exactly, so the excess may be small.
                del items[-max(1, int(len(items) * part)) :]
                return True
        closed = self.topics is not None
        self.topics = None
        return closed


def gist(text: str, tokens: int) -> str:
    """Summarize a text in at most about `tokens` tokens, without a closing line."""
    paragraphs = [paragraph for paragraph in _PARAGRAPH.split(text, maxsplit=MOST_PARAGRAPHS) if paragraph.strip()]
    sources = tuple(
        SourceMessage(source_id=f"paragraph {at}", seq=at, role="", text=paragraph)
        for at, paragraph in enumerate(paragraphs, start=1)
    )
    if not sources:
        return ""
    request = SummaryRequest(
        sources=sources, target_tokens=tokens, count_tokens=lambda piece: math.ceil(estimate_tokens(piece))
    )
    summary = ExtractiveSummarizer().summarize(request).text
    # The closing line tells how to expand a stored summary. A gist cannot be expanded.
    return "\n".join(line for line in summary.split("\n") if not line.startswith("Expand for details"))
