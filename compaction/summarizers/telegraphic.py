"""The last resort: what the sources say as a telegram. Always within its target, on any input whatever."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compaction.summarizers.base import SummaryDraft, SummaryRequest
from compaction.summarizers.budget import ROOM_FOR_CLOSING, affordable, best_beginning, nothing_said
from compaction.summarizers.coverage import Candidate, Coverage
from compaction.summarizers.identifiers import LONGEST_NAME, PIECE, names_of
from compaction.summarizers.material import Material, material_of
from compaction.summarizers.packing import pack
from compaction.summarizers.page import Days, closing, head, runs
from compaction.summarizers.sentences import Unit
from compaction.summarizers.terms import CJK
from compaction.summarizers.text import estimate_tokens

# A telegram of one message is chosen whole; of a longer one, by stretches of about this many words, so that a long tool
# result can give a part. A message of talk has ten to forty words.
_STRETCH = 40

# Not a word but data: cut, so that one of them cannot fill the text. CJK runs are cut to about a word.
_LONGEST_WORD = 40
_SLICES = re.compile(rf"[{CJK}]{{1,4}}|[^{CJK}]{{1,{_LONGEST_WORD}}}")
_EDGES = ".,:;!?…。"

# "didn't work" must not become "work".
_NEGATION = re.compile(r"\b(?:\w+n['’]t|cannot)\b", re.IGNORECASE)
_NOT = frozenset({"not", "no", "never", "without", "neither", "nor", "none"})


class Word(NamedTuple):
    """A word of a telegram and the terms it says. A negation stands or falls with the word after it."""

    text: str
    terms: tuple[int, ...]
    negated: str = ""


@dataclass(frozen=True)
class TelegraphicSummarizer:
    """A pure function of its request: words without the ones that only join them, each said once."""

    name: str = "telegraphic"

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        """Each kept message as its telling words. With room for nothing else a mark, and with none the empty text."""
        material = material_of(request.sources)
        budget = affordable(request)
        sources = len(request.sources)
        if not material.units:
            return SummaryDraft(text=nothing_said(request, budget), model=self.name, quality=1.0, left_out=sources)
        count = request.count_tokens
        telegrams = _Telegrams(material, count)
        with_closing = budget >= ROOM_FOR_CLOSING
        room = budget - count(f"\n{closing([], left_out=sources, sources=request.sources)}") if with_closing else budget
        text = pack(telegrams, render=telegrams.render, count_tokens=count, budget=room)
        if not telegrams.chosen:
            text = best_beginning(material, budget, count)
            return SummaryDraft(text=text, model=self.name, quality=0.0, left_out=sources - bool(text))
        left_out = sources - len(telegrams.sources_kept())
        closed = f"{text}\n{closing([], left_out=left_out, sources=request.sources)}"
        if with_closing and count(closed) <= budget:
            text = closed
        return SummaryDraft(
            text=text, model=self.name, quality=round(material.share(telegrams.said), 4), left_out=left_out
        )


class _Telegrams(Coverage):
    """Stretches of words to choose from. What is said already costs nothing more, because it is not said again."""

    # Words are all scraps: their worth per token is just what counts.
    cost_power = 0.6

    def __init__(self, material: Material, count_tokens: Callable[[str], int]) -> None:
        self._material = material
        self._places: list[int] = []
        self._words: list[tuple[Word, ...]] = []
        self._kept: dict[int, str] = {}
        self._costs: dict[str, int] = {}
        self._count_tokens = count_tokens
        candidates = []
        for place, unit, weight in zip(material.passage_of, material.units, material.weights, strict=True):
            words = tuple(w for w in _words(unit.text, material))
            terms = tuple(dict.fromkeys(term for word in words for term in word.terms))
            self._places.append(place)
            self._words.append(words)
            candidates.append(Candidate(terms, weight, place, 0.0))
        super().__init__(
            candidates=candidates, worth=material.worth, cost_of=self._cost, cost_of_heading=self._cost_of_heading
        )

    def render(self, chosen: Sequence[int]) -> str:
        """The telegrams in the order of the conversation, under as few heads as tell who spoke."""
        passages = self._material.passages
        days = Days.of(passages)
        kept = ((passages[self._places[index]], Unit(self._kept[index], is_prose=True)) for index in sorted(chosen))
        lines: list[str] = []
        shown = None
        for run in runs(kept):
            if days.are_shown and run.day is not None and run.day != shown:
                lines.append(days.label(run.day))
                shown = run.day
            lines.append(f"{run.head}: {'; '.join(' '.join(unit.text for unit in told) for told in run.messages)}")
        return "\n".join(lines)

    def sources_kept(self) -> set[int]:
        """The places of the sources that anything was kept of."""
        return {self._material.passages[self._places[index]].source for index in self.chosen}

    def _take(self, index: int) -> None:
        self._kept[index] = " ".join(self._unsaid(index))
        super()._take(index)

    def _price(self, index: int) -> float:
        own = sum([self._cost_of_word(word) for word in self._unsaid(index)])
        place = self._places[index]
        return own if place in self._paid else own + self._cost_of_heading(place)

    def _cost(self, index: int) -> float:
        return 0.0  # not asked: the price is always worked out anew

    def _unsaid(self, index: int) -> list[str]:
        said = self.said
        found: list[str] = []
        new: set[int] = set()
        for text, terms, negated in self._words[index]:
            if any(term not in said and term not in new for term in terms):
                new.update(terms)
                found.append(f"{negated} {text}" if negated else text)
        return found

    def _cost_of_word(self, word: str) -> int:
        cost = self._costs.get(word)
        if cost is None:
            cost = self._costs[word] = self._count_tokens(f" {word}")
        return cost

    def _cost_of_heading(self, place: int) -> float:
        passage = self._material.passages[place]
        return estimate_tokens(head(passage.who, passage.first_seq, passage.last_seq))


def _words(text: str, material: Material) -> Iterator[Word]:
    negated = ""
    for piece in _pieces(_NEGATION.sub(" not ", text)):
        terms = tuple(term for term in material.vocabulary.terms(piece) if term < len(material.worth))
        if piece.lower() in _NOT:
            negated = piece
        elif terms:
            yield Word(piece, terms, negated)
            negated = ""


def _pieces(text: str) -> Iterator[str]:
    """The words of a text as they will be shown: names whole, monsters in slices."""
    for piece in PIECE.findall(text):
        if len(piece) <= _LONGEST_WORD and piece.isascii() or len(piece) <= LONGEST_NAME and names_of(piece):
            yield piece.strip(_EDGES)
        else:
            yield from _SLICES.findall(piece.strip(_EDGES))
