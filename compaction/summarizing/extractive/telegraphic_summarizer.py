"""The last resort: the sources' informative words, always within the target."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from compaction.summarizing.extractive.clean_text import estimate_tokens
from compaction.summarizing.extractive.coverage import Candidate, Coverage, pack
from compaction.summarizing.extractive.identifiers import LONGEST_NAME, PIECE, names_of
from compaction.summarizing.extractive.material import ROOM_FOR_CLOSING, Material, budget_of, material_of, poor_draft
from compaction.summarizing.extractive.sentences import Unit
from compaction.summarizing.extractive.summary_form import Turns, closing, days_of, write
from compaction.summarizing.extractive.terms import CJK
from compaction.summarizing.summarizer import SummaryDraft, SummaryRequest

# Longer words are data. They are cut, so that one cannot fill the text. CJK runs are cut to the length of about a word.
_LONGEST_WORD = 40
_SLICES = re.compile(rf"[{CJK}]{{1,4}}|[^{CJK}]{{1,{_LONGEST_WORD}}}")
_EDGES = ".,:;!?…。"

# "didn't work" must not become "work".
_NEGATION = re.compile(r"\b(?:\w+n['’]t|cannot)\b", re.IGNORECASE)
_NOT = frozenset({"not", "no", "never", "without", "neither", "nor", "none"})


class Word(NamedTuple):
    """A word, its terms, and the negation before it or ""."""

    text: str
    terms: tuple[int, ...]
    negation: str


@dataclass(frozen=True)
class TelegraphicSummarizer:
    """Keeps the informative words, each once, under their speakers."""

    name: str = "telegraphic"

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        """Return a text within the target; an empty one if not even a mark fits."""
        material = material_of(request.sources)
        budget, count, sources = budget_of(request), request.count_tokens, request.sources
        telegrams = _Telegrams(material, count)
        ending = f"\n{closing([], left_out=len(sources), sources=sources)}" if budget >= ROOM_FOR_CLOSING else ""
        text = pack(telegrams, render=telegrams.render, count_tokens=count, budget=budget - count(ending))
        if not telegrams.chosen:
            return poor_draft(request, material, budget, model=self.name)
        left_out = len(sources) - len(material.sources_of(telegrams.chosen))
        if ending:
            closed = f"{text}\n{closing([], left_out=left_out, sources=sources)}"
            text = closed if count(closed) <= budget else text
        quality = round(material.share(telegrams.covered), 4)
        return SummaryDraft(text=text, model=self.name, quality=quality, left_out=left_out)


class _Telegrams(Coverage):
    """A choice of units as lists of words, without the words already covered."""

    def __init__(self, material: Material, count_tokens: Callable[[str], int]) -> None:
        self._material = material
        self._tokens_of_word = cache(lambda word: count_tokens(f" {word}"))
        self._days = days_of(material.passages)
        self._words = [tuple(_words(unit.text, material)) for _, unit, _, _ in material.statements]
        self._kept: dict[int, str] = {}
        self._denied: set[str] = set()
        super().__init__(
            candidates=[
                Candidate(tuple(dict.fromkeys(term for word in words for term in word.terms)), weight, place, 0.0)
                for words, (place, _, weight, _) in zip(self._words, material.statements, strict=True)
            ],
            worth=material.worth,
            tokens_of=self._own_tokens,
            tokens_of_heading=lambda place: estimate_tokens(material.passages[place].head),
        )

    def render(self, chosen: Sequence[int]) -> str:
        """Write the chosen units in the order of the conversation, under few heads."""
        passages, statements = self._material.passages, self._material.statements
        kept = ((passages[statements[index].place], Unit(self._kept[index], is_prose=True)) for index in sorted(chosen))
        return write(kept, days=self._days, render=_telegram)

    def _take(self, index: int) -> None:
        words = self._uncovered(index)
        self._kept[index] = " ".join(map(_shown, words))
        self._denied.update(_shown(word) for word in words if word.negation)
        super()._take(index)

    def _own_tokens(self, index: int) -> float:
        return sum([self._tokens_of_word(_shown(word)) for word in self._uncovered(index)])

    def _uncovered(self, index: int) -> list[Word]:
        """Return the words of a unit that are not covered yet.

        A covered word is included, too, if its negation is new.
        """
        covered = self.covered
        now: set[int] = set()
        words: list[Word] = []
        for word in self._words[index]:
            if any(term not in covered and term not in now for term in word.terms) or (
                word.negation and _shown(word) not in self._denied
            ):
                now.update(word.terms)
                words.append(word)
        return words


def _shown(word: Word) -> str:
    return f"{word.negation} {word.text}" if word.negation else word.text


def _telegram(head: str, turns: Turns) -> str:
    return f"{head}: {'; '.join(' '.join(unit.text for unit in turn) for turn in turns)}"


def _words(text: str, material: Material) -> Iterator[Word]:
    negation = ""
    for piece in _pieces(_NEGATION.sub(" not ", text)):
        if piece.lower() in _NOT:
            negation = piece.lower()
            continue
        terms = material.vocabulary.known(piece)
        if terms:
            yield Word(piece, terms, negation)
            negation = ""


def _pieces(text: str) -> Iterator[str]:
    """Yield the words of a text as they are shown: names whole, very long words cut."""
    for piece in PIECE.findall(text):
        if len(piece) <= _LONGEST_WORD and piece.isascii() or len(piece) <= LONGEST_NAME and names_of(piece):
            yield piece.strip(_EDGES)
        else:
            yield from _SLICES.findall(piece.strip(_EDGES))
