"""Choose names and phrases that show what a summary omits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from compaction.summarizing.extractive.clean_text import estimate_tokens
from compaction.summarizing.extractive.coverage import Candidate, Coverage
from compaction.summarizing.extractive.material import Material
from compaction.summarizing.extractive.terms import CJK, is_telling, term_of, worth

# Minimum worth of a word in a phrase: small talk ("good", "know") would not show what to expand for.
_LEAST_WORTH = 2.0
_LONGEST_PHRASE = 3

# Maximum number of sentences and names that are considered, best first: only a few dozen phrases or names fit.
_SENTENCES = 100
_NAMES = 400
_CHEAPEST_NAME = 3

# An exponent below 1 favours long names: short names are more likely keywords of a programming language.
_NAME_COST_POWER = 0.5

_REMEMBERED = 1 << 12

_WORD = r"[^\W_]+(?:[-'’][^\W_]+)*"
_RUN = re.compile(rf"{_WORD}(?: {_WORD})*")
_CJK_WORDS = re.compile(f"[{CJK}]{{2,6}}")


def names_left_out(material: Material) -> list[int]:
    """Return the names in the sources, those most likely to be needed again first."""
    spelling, uses = material.vocabulary.spelling, material.uses
    ranked = sorted(uses, key=lambda name: (-uses[name] / estimate_tokens(spelling[name]) ** _NAME_COST_POWER, name))
    return ranked[:_NAMES]


def index_of_names(
    names: list[int], *, material: Material, shown: str, budget: int, count_tokens: Callable[[str], int]
) -> list[int]:
    """Choose as many names as fit into the budget, except those in `shown`."""
    picked: list[int] = []
    for name in names:
        if budget < _CHEAPEST_NAME:
            break
        spelling = material.vocabulary.spelling[name]
        # A name that is part of a longer name in `shown` can be read and searched for there.
        if spelling in shown:
            continue
        cost = count_tokens(f" {spelling},")
        if cost <= budget:
            picked.append(name)
            shown = f"{shown}\n{spelling}"
            budget -= cost
    return picked


def topics_left_out(
    material: Material, *, covered: set[int], kept: set[int], budget: int, count_tokens: Callable[[str], int]
) -> list[str]:
    """Choose phrases with terms that the summary lacks, from sentences it omits."""
    phrases: list[str] = []
    candidates: list[Candidate] = []
    seen: set[str] = set()
    for index in _sentences(material, covered, kept):
        for phrase in phrases_of(material.statements[index].unit.text):
            folded = phrase.lower()
            if folded in seen:
                continue
            seen.add(folded)
            terms = tuple(term for term in material.vocabulary.known(phrase) if term not in covered)
            if terms:
                phrases.append(phrase)
                candidates.append(Candidate(terms, material.statements[index].weight, 0, estimate_tokens(phrase)))
    coverage = Coverage(
        candidates=candidates,
        worth=material.worth,
        tokens_of=lambda index: count_tokens(f" {phrases[index]},"),
        tokens_of_heading=lambda heading: 0,
    )
    coverage.fill(budget)
    return [phrases[index] for index in sorted(coverage.chosen)]


def phrases_of(text: str) -> Iterator[str]:
    """Yield phrases of up to three words, at least one of which names something."""
    if not text.isascii():
        yield from _CJK_WORDS.findall(text)
    for run in _RUN.findall(text):
        held: list[str] = []
        tells = False
        for word in (*run.split(" "), ""):
            fits, tells_here = _suits(word)
            if not fits or len(held) == _LONGEST_PHRASE:
                if tells:
                    yield " ".join(held)
                held, tells = [], False
            if fits:
                held.append(word)
                tells = tells or tells_here


@lru_cache(maxsize=_REMEMBERED)
def _suits(word: str) -> tuple[bool, bool]:
    """Whether a word may be in a phrase, and whether it makes it worth showing."""
    term = term_of(word)
    return bool(term) and worth(term) >= _LEAST_WORTH, is_telling(term)


def _sentences(material: Material, covered: set[int], kept: set[int]) -> list[int]:
    """Return the dropped sentences that would have added most, in their order."""
    left = [index for index, (_, unit, _, _) in enumerate(material.statements) if unit.is_prose and index not in kept]
    return sorted(sorted(left, key=lambda index: (-material.gain(index, covered), index))[:_SENTENCES])
