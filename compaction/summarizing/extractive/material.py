"""Turn sources into units with scored terms, and set the budget of a summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compaction.summarizing.extractive.clean_text import fit
from compaction.summarizing.extractive.passages import passages_of
from compaction.summarizing.extractive.sentences import Unit
from compaction.summarizing.extractive.summary_form import Passage, closing
from compaction.summarizing.extractive.terms import SMALL_TALK_WORTH, Vocabulary, terms_of
from compaction.summarizing.summarizer import Source, SourceMessage, SummaryDraft, SummaryRequest

# The weight of names in hidden text, such as the body of an edit: the same as in tool output.
_HIDDEN_WEIGHT = 0.7

# A term in several messages is likely their subject, and will be searched for: its worth rises with the logarithm of
# the number of messages. (Words that are common in general are listed, see terms.py.) But a term in more than half of
# all messages is not a subject: in a language without a word list, such terms are function words.
_REPEATED = 0.25
_USUAL = 0.5

# Every head names its speaker, so a speaker's name, or a short form of it, adds almost nothing.
_SPEAKER_WORTH = 0.5
_SHORTEST_SHORT_FORM = 3

# A summary has at most half of its sources' tokens: a longer one would save too little. It may always have one line.
_MOST_OF_SOURCE = 0.5
_A_LINE = 8

# Below this budget, there is no closing line, and every token goes into content.
ROOM_FOR_CLOSING = 40

# The shortest text, for when no other fits.
MARK = "…"


class Statement(NamedTuple):
    """A unit with the index of its passage, its weight and its terms."""

    place: int
    unit: Unit
    weight: float
    terms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that a summary could contain.

    `worth` and `heaviest` (the greatest weight of a unit with the term) are indexed by term. `uses` has, for each name,
    the sum of the weights of the passages that use it.
    """

    passages: tuple[Passage, ...]
    statements: tuple[Statement, ...]
    vocabulary: Vocabulary
    worth: tuple[float, ...]
    heaviest: tuple[float, ...]
    uses: dict[int, float]

    def gain(self, index: int, covered: Container[int] = ()) -> float:
        """Return the worth that one statement would add to the covered terms."""
        statement = self.statements[index]
        return statement.weight * sum([self.worth[term] for term in statement.terms if term not in covered])

    def share(self, covered: Iterable[int]) -> float:
        """Return the share of all worth that these terms cover, from 0 to 1."""
        total = math.fsum(worth * weight for worth, weight in zip(self.worth, self.heaviest, strict=True))
        kept = math.fsum(self.worth[term] * self.heaviest[term] for term in covered)
        return kept / total if total else 1.0

    def sources_of(self, chosen: Iterable[int]) -> set[int]:
        """Return the indexes of the sources that the chosen statements are from."""
        return {self.passages[self.statements[index].place].source for index in chosen}


def material_of(sources: Sequence[Source]) -> Material:
    """Build the material of a summary from its sources."""
    passages = tuple(passages_of(sources))
    vocabulary = Vocabulary()
    telling: list[Statement] = []
    idle: list[Statement] = []
    heaviest: dict[int, float] = {}
    uses: dict[int, float] = {}
    spread: Counter[int] = Counter()
    for place, passage in enumerate(passages):
        here: dict[int, float] = {}
        for unit, weight in zip(passage.units, passage.weights, strict=True):
            terms = vocabulary.terms(unit.text)
            if not terms:
                continue
            tells = any(vocabulary.worth[term] > SMALL_TALK_WORTH for term in terms)
            (telling if tells else idle).append(Statement(place, unit, weight, terms))
            for term in terms:
                here[term] = max(weight, here.get(term, 0.0))
        for name in vocabulary.names(passage.hidden):
            here.setdefault(name, _HIDDEN_WEIGHT)
        spread.update(here.keys())
        for term, weight in here.items():
            heaviest[term] = max(weight, heaviest.get(term, 0.0))
            if vocabulary.is_name[term]:
                # The more messages use a name, and the higher their weight, the more likely it is needed again.
                uses[term] = uses.get(term, 0.0) + weight
    return Material(
        passages=passages,
        # Small talk such as "Great, thank you!" is kept only if there is nothing else.
        statements=tuple(telling or idle),
        vocabulary=vocabulary,
        worth=_worth(vocabulary, spread, len(passages), _speakers(sources)),
        heaviest=tuple(heaviest.get(number, 0.0) for number in range(len(vocabulary.term))),
        uses=uses,
    )


def _worth(vocabulary: Vocabulary, spread: Counter[int], passages: int, speakers: frozenset[str]) -> tuple[float, ...]:
    """Return the worth of each term in this material."""
    usual = _USUAL * max(1, passages)
    worth = []
    for number, (term, general) in enumerate(zip(vocabulary.term, vocabulary.worth, strict=True)):
        own = _SPEAKER_WORTH if term in speakers else general
        many = spread.get(number, 1)
        worth.append(own * (1 + _REPEATED * math.log(many)) * min(1.0, usual / many))
    return tuple(worth)


def _speakers(sources: Sequence[Source]) -> frozenset[str]:
    names = {source.author for source in sources if isinstance(source, SourceMessage)}
    terms = {term for name in names for term in terms_of(name)}
    return frozenset(term[:end] for term in terms for end in range(_SHORTEST_SHORT_FORM, len(term) + 1))


def budget_of(request: SummaryRequest) -> int:
    """Return the budget: the target, or half of the sources' tokens if that is less."""
    cost = sum(request.count_tokens(source.text) for source in request.sources)
    return min(request.target_tokens, max(_A_LINE, int(_MOST_OF_SOURCE * cost)), max(1, cost - 1))


def poor_draft(request: SummaryRequest, material: Material, budget: int, *, model: str) -> SummaryDraft:
    """Make the draft if there are no statements, or if no whole unit fits."""
    if not material.statements:
        text = _text_without_content(request, budget)
        return SummaryDraft(text=text, model=model, quality=1.0, left_out=len(request.sources))
    text = _best_beginning(material, budget, request.count_tokens)
    return SummaryDraft(text=text, model=model, quality=0.0, left_out=len(request.sources) - bool(text))


def _best_beginning(material: Material, budget: int, count_tokens: Callable[[str], int]) -> str:
    """Return the beginning of the best unit, if no whole unit fits."""
    best = max(range(len(material.statements)), key=lambda index: (material.gain(index), -index))
    place, unit, *_ = material.statements[best]
    passage = material.passages[place]
    headed = f"{passage.head}: "
    text = fit(headed + unit.text, budget, count_tokens)
    if len(text) > len(headed):
        return text
    return fit(unit.text, budget, count_tokens) or fit(MARK, budget, count_tokens)


def _text_without_content(request: SummaryRequest, budget: int) -> str:
    """Return the text for sources without words, such as pictures."""
    if not request.sources:
        return ""
    text = closing([], left_out=len(request.sources), sources=request.sources)
    return text if request.count_tokens(text) <= budget else fit(MARK, budget, request.count_tokens)
