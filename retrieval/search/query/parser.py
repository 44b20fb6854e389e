"""Parse queries: words, "phrases", or, -exclusions, and dates; no I/O."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from typing import NamedTuple

# The maximum number of terms. A longer query, such as a pasted page, is searched by its first terms.
MOST_TERMS = 100

# One character of a script without spaces between words.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
# A run of them that counts as one word: up to four, or any number in Katakana or Hangul. Other runs may be sentences.
_UNSPACED_WORD = re.compile(rf"{UNSPACED.pattern}{{1,4}}|[\u30a0-\u30ff]+|[\uac00-\ud7af]+")

_QUOTES = str.maketrans("“”„«»", '"""""')
# A quote opens a phrase only at the start of a word, and only if the phrase is closed, because 5" is a size.
_TOKEN = re.compile(r'(?P<without>-)?"(?P<phrase>[^"]*)"|(?P<word>\S+)')
_EXCLUDED_WORD = re.compile(r"-(?=<?[^\W_])")
_BLANK = re.compile(r"\s")
_IDENTIFIER = re.compile(
    r"[^\W_][_/\\]+[^\W_]"  # a_b, a/b
    r"|[^\W_](?:::|->|#)[^\W_]"
    r"|[^\W\d_][\w-]{0,60}\.[^\W\d_]\w"  # name.ext
    r"|^[._/~$@-]+\w+"  # .env, __init__, ./x, --flag
    r"|[a-z0-9][A-Z]\w"  # camelCase
    r"|^(?=\w*\d)(?=\w*[a-zA-Z])[\w-]{6,}$"  # a hash, a ticket
    r"|\w\(\)?$"  # a call
)
# A file with a line number, as in stack traces and compiler output: `src/x.ts:42`, `x.py:42:7:`.
_LINE = re.compile(r"(?P<file>.*\.[^\W\d_]\w*):\d+(?::\d+)?[:,]?")
# A query with at least this many clauses, and a function word among them, is a sentence.
_SENTENCE_WORDS = 6
_HOLDING = """
    a an and are as at be by can did do does for from had has have how i if in is it me my of on our should so that the
    their them there they this to was we were what when where which who why will with would you your
"""
_FUNCTION_WORDS = frozenset(_HOLDING.split())


class Term(NamedTuple):
    """A word, or a phrase of several words."""

    text: str
    is_phrase: bool = False


@dataclass(frozen=True)
class ParsedQuery:
    """Clauses that must all match, and excluded terms; any term matches its clause."""

    text: str
    clauses: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms except the excluded ones, in their order."""
        return tuple(term for clause in self.clauses for term in clause)

    @cached_property
    def is_sentence(self) -> bool:
        """Whether this is a sentence, and not a few words to be found together."""
        if self.text.rstrip().endswith(("?", "？")):
            return True
        return len(self.clauses) >= _SENTENCE_WORDS and any(term.text.lower() in _FUNCTION_WORDS for term in self.terms)

    @property
    def is_one_word(self) -> bool:
        """Whether this is a single word."""
        if len(self.terms) != 1 or self.terms[0].is_phrase:
            return False
        text = self.terms[0].text
        return UNSPACED.search(text) is None or _UNSPACED_WORD.fullmatch(text) is not None

    @property
    def is_look_up(self) -> bool:
        """Whether the query looks for an identifier, and not for messages around it."""
        return not self.is_sentence and any(is_identifier(term.text) for term in self.terms)


def is_identifier(text: str) -> bool:
    """Whether a word looks like an identifier: a path, a call, camelCase, a hash."""
    return _IDENTIFIER.search(text) is not None


def parse(text: str) -> ParsedQuery:
    """Parse a query in websearch syntax; every text is valid.

    If the whole query is one identifier that begins with `-`, it is searched for: without it, nothing would be left.
    """
    alone = text.strip().removeprefix("-- ").strip()
    if _EXCLUDED_WORD.match(alone) and not _BLANK.search(alone) and is_identifier(alone[1:]):
        return ParsedQuery(text, ((Term(alone),),))
    clauses: list[list[Term]] = []
    excluded: list[Term] = []
    joins_last = False
    for found in _TOKEN.finditer(text.translate(_QUOTES)):
        if sum(map(len, clauses)) + len(excluded) >= MOST_TERMS:
            break
        word, phrase = found["word"], found["phrase"]
        if word is not None and word.lower() == "or":
            joins_last = bool(clauses)
            continue
        if word is not None:
            is_excluded = _EXCLUDED_WORD.match(word) is not None
            term = Term(word[1:] if is_excluded else word)
        else:
            is_excluded = found["without"] is not None
            term = Term(phrase, is_phrase=len(phrase.split()) > 1)
        if not term.text.strip():
            continue
        # A term with a file and a line number also matches the file alone.
        line = None if term.is_phrase else _LINE.fullmatch(term.text)
        alternatives = [term, Term(line["file"])] if line else [term]
        if is_excluded:
            excluded.append(term)
        elif joins_last:
            clauses[-1] += alternatives
        else:
            clauses.append(alternatives)
        joins_last = False
    return ParsedQuery(text, tuple(dict.fromkeys(map(tuple, clauses))), tuple(excluded))


def interpretations(text: str) -> tuple[ParsedQuery, ...]:
    """Parse a query; if it has phrases, add a second version with single words."""
    query = parse(text)
    if not any(term.is_phrase for term in query.terms):
        return (query,)
    words = [Term(word) for term in query.terms for word in (term.text.split() if term.is_phrase else [term.text])]
    return query, replace(query, clauses=tuple((word,) for word in [*dict.fromkeys(words)][:MOST_TERMS]))


_MONTHS = [
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
]  # fmt: skip
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_DAY = r"(?P<{0}>[0-3]?\d)(?:st|nd|rd|th)?"
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?\b")
_NAMED = re.compile(
    rf"\b(?:{_DAY.format('before')}\s+(?:of\s+)?)?(?P<month>{_MONTH})\b\.?(?:\s+{_DAY.format('after')}\b(?!\d))?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_WEEKDAY = re.compile(rf"\b({'|'.join(_WEEKDAYS)})s?\b", re.IGNORECASE)

_ASKS_WHEN = re.compile(
    r"^\W*when\b|\bwhen\s+(?:did|do|does|is|are|was|were|will|has|have|had)\b"
    r"|\b(?:what|which)\s+(?:day|date|week|month|year)\b|\bhow\s+long\s+ago\b",
    re.IGNORECASE,
)

# The weight of a month, day of the month, weekday or year in a date: its information in nats, which is the logarithm of
# the number of possible values. For years, two values are assumed, because a conversation is in few years.
_MONTH_TELLS, _DAY_TELLS, _WEEKDAY_TELLS, _YEAR_TELLS = math.log(12), math.log(30), math.log(7), math.log(2)


@dataclass(frozen=True)
class Dates:
    """The parts of dates in a query; each of the sets may be empty."""

    months: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.months or self.days or self.weekdays or self.years)

    def information_in(self, moment: datetime) -> float:
        """The sum of the weights of the parts that agree with this moment, in nats."""
        return (
            _MONTH_TELLS * (moment.month in self.months)
            + _DAY_TELLS * (moment.day in self.days and (not self.months or moment.month in self.months))
            + _WEEKDAY_TELLS * (moment.weekday() in self.weekdays)
            + _YEAR_TELLS * (moment.year in self.years)
        )


def asks_when(text: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS_WHEN.search(text) is not None


def dates_in(text: str) -> Dates:
    """Find the dates in a text; months such as `May` count only if capitalized."""
    months, days, years = set(), set(), {int(year) for year in _YEAR.findall(text)}
    for found in _ISO.finditer(text):
        months.add(int(found["month"]))
        if found["day"]:
            days.add(int(found["day"]))
    for found in _NAMED.finditer(text):
        name = found["month"]
        if name.lower() in ("may", "march", "mar", "dec", "sep", "jan") and not name[0].isupper():
            continue
        months.add([month[:3] for month in _MONTHS].index(name[:3].lower()) + 1)
        days.update(int(day) for day in (found["before"], found["after"]) if day)
    weekdays = {_WEEKDAYS.index(name.lower()) for name in _WEEKDAY.findall(text)}
    return Dates(
        months=frozenset(month for month in months if 1 <= month <= 12),
        days=frozenset(day for day in days if 1 <= day <= 31),
        weekdays=frozenset(weekdays),
        years=frozenset(year for year in years if date.min.year <= year),
    )
