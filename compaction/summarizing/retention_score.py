"""Score how many facts of its sources a summary keeps verbatim. Pure.

Paths, URLs, identifiers, error codes, numbers and proper names are either in a text letter by letter or lost. So they
can be counted for any summary, and the share that survives distinguishes a summary of its sources from a text that only
sounds like one. The score says nothing of style and cannot be compared between conversations: nearly all names of a
talk survive, and nearly none of a tool's long listings.
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

# A path or a code is looked for again as it was written. A number may be written otherwise ("some thirty"), and many
# are counts and line numbers of no use; a name may be a pronoun's, or a word that only began with a capital.
# The weights of a name, a number and a person.
_WEIGHTS = (1.0, 0.4, 0.7)

# A number by itself: not inside a name or a path, and of two digits at least, because "2" is as often written "two".
# What comes before is looked at when there is a digit: the other way round, at every character.
_NUMBER = re.compile(r"\d(?<![\w./:-]\d)[\d.,:/-]{0,30}\d(?![\w/]|-\w)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")

# A word with a capital after a word without one, so that it is no sentence that begins. Scripts that have capitals.
_LOWER, _UPPER = "a-zß-öø-ÿа-яёα-ωά-ώ", "A-ZÀ-ÖØ-ÞА-ЯЁΑ-Ω"
_PERSON = re.compile(rf"[{_UPPER}](?<=[{_LOWER},] [{_UPPER}])[{_LOWER}]{{2,30}}\b")
_WORD = re.compile(r"[^\W\d_]{3,31}")
_KNOWN_WORDS = FUNCTION_WORDS | SMALL_TALK | PLAIN | EVERYDAY | COMMON | PROGRAMMING


class _Facts(NamedTuple):
    """What of a text must survive letter by letter."""

    names: frozenset[str]
    numbers: frozenset[str]
    people: frozenset[str]


def retention(sources: Iterable[str], summary: str) -> float | None:
    """The weighted share of the sources' facts in the summary; None without any.

    Every distinct fact counts once, and by the logarithm more the more sources speak of it: what came up again and
    again was worked on, what stood once in a listing was not.
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
    # Exactly rounded whatever the order, and the order of a set differs from process to process.
    return round(math.fsum(saved) / math.fsum(whole), 4) if whole else None


def keeps_no_name(sources: Iterable[str], summary: str, *, of_at_least: int) -> bool:
    """Whether the sources have so many names and the summary keeps no fact.

    Only names count as many: they stay letter by letter in every language, while people's names are inflected.
    """
    facts = [_facts_of(text) for text in sources]
    names = frozenset(chain.from_iterable(each.names for each in facts))
    if len(names) < of_at_least:
        return False
    kept = _kept_in(summary)
    return not any(_common(each, kept) for each in facts)


def survivors(source: str, summary: str) -> frozenset[str]:
    """The facts of a source that its summary still says, letter by letter."""
    return _common(_facts_of(source), _kept_in(summary))


def _facts_of(text: str) -> _Facts:
    # The end of a tag is no path.
    pieces = set(PIECE.findall(text.replace("</", "<")))
    return _Facts(
        names=frozenset(chain.from_iterable(map(names_of, pieces))),
        numbers=frozenset(_THOUSANDS.sub("", number) for number in set(_NUMBER.findall(text))),
        people=frozenset(word for word in set(_PERSON.findall(text)) if word.lower() not in _KNOWN_WORDS),
    )


def _kept_in(summary: str) -> _Facts:
    """The facts of a summary; any word of it may be a person's name."""
    return _facts_of(summary)._replace(people=frozenset(_WORD.findall(summary)))


def _common(facts: _Facts, kept: _Facts) -> frozenset[str]:
    return (facts.names & kept.names) | (facts.numbers & kept.numbers) | (facts.people & kept.people)
