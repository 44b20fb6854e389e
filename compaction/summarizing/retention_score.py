"""Score how many facts of its sources a summary keeps verbatim. Pure.

Facts are paths, URLs, identifiers, error codes, numbers and proper names: a text contains them verbatim or not at all.
The share of the facts that a summary keeps distinguishes it from a text that only sounds like a summary. The score says
nothing about style, and cannot be compared between conversations: a summary keeps nearly all names of a talk, and
nearly none of a tool's listings.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from compaction.summarizing.extractive.identifiers import PIECE, names_of
from compaction.summarizing.extractive.terms import COMMON, EVERYDAY, FUNCTION_WORDS, PLAIN, PROGRAMMING, SMALL_TALK

# The weights of a name, a number and a person. People search for a path or a code as it was written. A number may be
# written in another way ("some thirty"), and many numbers are useless counts and line numbers. A person may be named by
# a pronoun, or may be a word that only began with a capital.
_WEIGHTS = (1.0, 0.4, 0.7)

# A number by itself: not inside a name or a path, and of at least two digits, because "2" is as often written "two".
# The lookbehind follows the first digit, so that it is not evaluated at every character.
_NUMBER = re.compile(r"\d(?<![\w./:-]\d)[\d.,:/-]{0,30}\d(?![\w/]|-\w)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")

# A capitalized word after one in lower case, so that it does not begin a sentence. For scripts with capitals.
_LOWER, _UPPER = "a-zß-öø-ÿа-яёα-ωά-ώ", "A-ZÀ-ÖØ-ÞА-ЯЁΑ-Ω"
_PERSON = re.compile(rf"[{_UPPER}](?<=[{_LOWER},] [{_UPPER}])[{_LOWER}]{{2,30}}\b")
_WORD = re.compile(r"[^\W\d_]{3,31}")
_KNOWN_WORDS = FUNCTION_WORDS | SMALL_TALK | PLAIN | EVERYDAY | COMMON | PROGRAMMING


class _Facts(NamedTuple):
    """The facts of a text, which a summary should keep verbatim."""

    names: frozenset[str]
    numbers: frozenset[str]
    people: frozenset[str]


def retention(sources: Iterable[str], summary: str) -> float | None:
    """Return the weighted share of the sources' facts in the summary, or None.

    The result is None if the sources have no facts. The weight of a fact grows with the logarithm of the number of
    sources that contain it: a fact that recurs was worked on; a fact that occurred once in a listing was not.
    """
    counted = [Counter(chain.from_iterable(kind)) for kind in zip(*map(_facts_of, sources), strict=True)]
    kept = _kept_in(summary)
    whole, saved = [], []
    for counts, kept_facts, weight in zip(counted, kept, _WEIGHTS, strict=False):
        for fact, count in counts.items():
            worth = weight * (1 + math.log(count))
            whole.append(worth)
            if fact in kept_facts:
                saved.append(worth)
    # fsum is exact in any order; the order of a set differs from process to process.
    return round(math.fsum(saved) / math.fsum(whole), 4) if whole else None


def keeps_no_name(sources: Iterable[str], summary: str, *, of_at_least: int) -> bool:
    """Whether sources with `of_at_least` names share no fact with the summary.

    Only names (paths, identifiers, ...) are counted: they stay verbatim in every language, while people's names are
    inflected.
    """
    facts = [_facts_of(text) for text in sources]
    names = frozenset(chain.from_iterable(each.names for each in facts))
    if len(names) < of_at_least:
        return False
    kept = _kept_in(summary)
    return not any(_common(each, kept) for each in facts)


def kept_facts(source: str, summary: str) -> frozenset[str]:
    """Return the facts of a source that its summary keeps verbatim."""
    return _common(_facts_of(source), _kept_in(summary))


def _facts_of(text: str) -> _Facts:
    # A closing tag such as "</p>" is no path.
    pieces = set(PIECE.findall(text.replace("</", "<")))
    return _Facts(
        names=frozenset(chain.from_iterable(map(names_of, pieces))),
        numbers=frozenset(_THOUSANDS.sub("", number) for number in set(_NUMBER.findall(text))),
        people=frozenset(word for word in set(_PERSON.findall(text)) if word.lower() not in _KNOWN_WORDS),
    )


def _kept_in(summary: str) -> _Facts:
    """Return the facts of a summary, in which any word may be a person's name."""
    return _facts_of(summary)._replace(people=frozenset(_WORD.findall(summary)))


def _common(facts: _Facts, kept: _Facts) -> frozenset[str]:
    return (facts.names & kept.names) | (facts.numbers & kept.numbers) | (facts.people & kept.people)
