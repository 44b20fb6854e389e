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
from compaction.summarizing.extractive.terms import (
    COMMON,
    EVERYDAY,
    FUNCTION_WORDS,
    PLAIN,
    PROGRAMMING,
    SMALL_TALK,
)

# A path or a code is looked for again as it was written. A number may be written otherwise ("some thirty"), and many
# are counts and line numbers of no use; a name may be a pronoun's, or a word that only began with a capital.
_NAME_WEIGHT = 1.0
_PERSON_WEIGHT = 0.7
_NUMBER_WEIGHT = 0.4

# A number by itself: not inside a name or a path, and of two digits at least, because "2" is as often written "two".
# What comes before is looked at when there is a digit: the other way round, at every character.
_NUMBER = re.compile(r"\d(?<![\w./:-]\d)[\d.,:/-]{0,30}\d(?![\w/]|-\w)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")

# A word with a capital after a word without one, so that it is no sentence that begins. Scripts that have capitals.
_LOWER, _UPPER = "a-zß-öø-ÿа-яёα-ωά-ώ", "A-ZÀ-ÖØ-ÞА-ЯЁΑ-Ω"
_PERSON = re.compile(rf"[{_UPPER}](?<=[{_LOWER},] [{_UPPER}])[{_LOWER}]{{2,30}}\b")
_WORD = re.compile(r"[^\W\d_]{3,31}")
_KNOWN_WORDS = FUNCTION_WORDS | SMALL_TALK | PLAIN | EVERYDAY | COMMON | PROGRAMMING

# A plain word with its quotes, punctuation and blanks. It holds neither a name nor a number, and most words are plain.
# Each part ends where the next begins, so a word that does not match is read twice at most.
_QUOTES = r"\"'`()\[\]{}"
_MERE_WORD = re.compile(rf"(?<!\S)[{_QUOTES}]*[A-Za-z][a-z]*[.,:;!?{_QUOTES}]*(?!\S)\s*")

_NONE: frozenset[str] = frozenset()


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
    known = _Names()
    facts = [_facts_of(text, known) for text in sources]
    names = _counted(each.names for each in facts)
    numbers = _counted(each.numbers for each in facts)
    people = _counted(each.people for each in facts)
    kept = _facts_of(summary, known)
    words = frozenset(_WORD.findall(summary))
    whole = _sum((names, _NAME_WEIGHT), (numbers, _NUMBER_WEIGHT), (people, _PERSON_WEIGHT))
    if not whole:
        return None
    saved = _sum(
        (_only(names, kept.names), _NAME_WEIGHT),
        (_only(numbers, kept.numbers), _NUMBER_WEIGHT),
        (_only(people, words), _PERSON_WEIGHT),
    )
    return round(saved / whole, 4)


def keeps_no_name(sources: Iterable[str], summary: str, *, of_at_least: int) -> bool:
    """Whether the sources have so many names and the summary keeps no fact.

    Only names count as many: they stay letter by letter in every language, while people's names are inflected.
    """
    known = _Names()
    facts = [_facts_of(text, known) for text in sources]
    names = frozenset(chain.from_iterable(each.names for each in facts))
    if len(names) < of_at_least:
        return False
    kept, words = _facts_of(summary, known), frozenset(_WORD.findall(summary))
    return not any((each.names & kept.names) | (each.numbers & kept.numbers) | (each.people & words) for each in facts)


def _counted(facts: Iterable[frozenset[str]]) -> Counter[str]:
    """The number of sources that hold each fact."""
    return Counter(chain.from_iterable(facts))


def _only(counts: Counter[str], kept: frozenset[str]) -> Counter[str]:
    return Counter({fact: counts[fact] for fact in kept if fact in counts})


def _sum(*weighted: tuple[Counter[str], float]) -> float:
    # Exactly rounded whatever the order, and the order of a set differs from process to process.
    worth = {count: 1 + math.log(count) for counts, _ in weighted for count in set(counts.values())}
    return math.fsum([weight * worth[count] for counts, weight in weighted for count in counts.values()])


class _Names(dict[str, tuple[str, ...]]):
    """The names in each piece of text, looked up once."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        names = self[piece] = names_of(piece)
        return names


def _facts_of(text: str, known: _Names) -> _Facts:
    # No name or number has a blank in it.
    rest = _MERE_WORD.sub("", text)
    # The end of a tag is no path.
    pieces = set(PIECE.findall(rest.replace("</", "<")))
    numbers = _NUMBER.findall(rest)
    people = _PERSON.findall(text)
    return _Facts(
        # Most texts have none of one kind or another.
        names=frozenset(chain.from_iterable(map(known.__getitem__, pieces))) if pieces else _NONE,
        numbers=frozenset([_THOUSANDS.sub("", number) for number in set(numbers)]) if numbers else _NONE,
        people=frozenset([word for word in set(people) if word.lower() not in _KNOWN_WORDS]) if people else _NONE,
    )


def survivors(source: str, summary: str) -> frozenset[str]:
    """The facts of a source that its summary still says, letter by letter."""
    known = _Names()
    facts, kept = _facts_of(source, known), _facts_of(summary, known)
    words = frozenset(_WORD.findall(summary))
    return (facts.names & kept.names) | (facts.numbers & kept.numbers) | (facts.people & words)
