"""The sources taken apart: every unit with its terms, and what each term is worth among them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from compaction.summarizers.base import Source, SourceMessage
from compaction.summarizers.passages import Passage, passages_of
from compaction.summarizers.sentences import Unit
from compaction.summarizers.terms import terms_of
from compaction.summarizers.vocabulary import Vocabulary

# Names in what is not shown, such as the body of an edit, count like those in tool output.
_HIDDEN_WEIGHT = 0.7

# What several messages speak of is what the stretch is about, and will be asked for. How common a word is in general is
# known beforehand (words.py), so rarity within the stretch, which would say the opposite, is not needed...
_REPEATED = 0.25
# ... except for words that nearly every message has, which in a language without a word list are its grammar.
_USUAL = 0.5

# Every head says who speaks, so a speaker's name, or the short form of it, adds next to nothing.
_SPEAKER_WORTH = 0.5
_SHORTEST_SHORT_FORM = 3


@dataclass(frozen=True, slots=True)
class Material:
    """What could be said. `passage_of`, `units`, `weights` and `terms` run in parallel; the others by term number."""

    passages: tuple[Passage, ...]
    passage_of: tuple[int, ...]
    units: tuple[Unit, ...]
    weights: tuple[float, ...]
    terms: tuple[tuple[int, ...], ...]
    vocabulary: Vocabulary
    worth: tuple[float, ...]
    heaviest: tuple[float, ...]
    uses: dict[int, float]

    def share(self, said: set[int]) -> float:
        """How much of all that could be said these terms say, from 0 to 1."""
        total = math.fsum(worth * weight for worth, weight in zip(self.worth, self.heaviest, strict=True))
        kept = math.fsum(self.worth[term] * self.heaviest[term] for term in said)
        return kept / total if total else 1.0


def material_of(sources: Sequence[Source]) -> Material:
    """Reads every source once."""
    passages = tuple(passages_of(sources))
    vocabulary = Vocabulary()
    passage_of: list[int] = []
    units: list[Unit] = []
    weights: list[float] = []
    terms: list[tuple[int, ...]] = []
    heaviest: dict[int, float] = {}
    uses: Counter[int] = Counter()
    spread: Counter[int] = Counter()
    for place, passage in enumerate(passages):
        here: dict[int, float] = {}
        for unit, weight in zip(passage.units, passage.weights, strict=True):
            found = vocabulary.terms(unit.text)
            if not found:
                continue
            passage_of.append(place)
            units.append(unit)
            weights.append(weight)
            terms.append(found)
            for term in found:
                if weight > here.get(term, 0.0):
                    here[term] = weight
        for name in vocabulary.names(passage.hidden):
            here.setdefault(name, _HIDDEN_WEIGHT)
        spread.update(here.keys())
        for term, weight in here.items():
            if weight > heaviest.get(term, 0.0):
                heaviest[term] = weight
            if vocabulary.is_name[term]:
                # A name is needed again the more, the more messages use it, and the more those count.
                uses[term] += weight  # type: ignore[assignment]
    known = _speakers(sources)
    usual = _USUAL * max(1, len(passages))
    worth = tuple(
        (_SPEAKER_WORTH if term in known else general)
        * (1 + _REPEATED * math.log(spread[number] or 1))
        * min(1.0, usual / (spread[number] or 1))
        for number, (term, general) in enumerate(zip(vocabulary.term, vocabulary.worth, strict=True))
    )
    return Material(
        passages=passages,
        passage_of=tuple(passage_of),
        units=tuple(units),
        weights=tuple(weights),
        terms=tuple(terms),
        vocabulary=vocabulary,
        worth=worth,
        heaviest=tuple(heaviest.get(number, 0.0) for number in range(len(worth))),
        uses=dict(uses),
    )


def _speakers(sources: Sequence[Source]) -> frozenset[str]:
    names = {source.author for source in sources if isinstance(source, SourceMessage)}
    terms = {term for name in names for term in terms_of(name)}
    return frozenset(term[:end] for term in terms for end in range(_SHORTEST_SHORT_FORM, len(term) + 1))
