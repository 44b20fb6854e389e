"""What the database knows about words: their lexemes, and how common these are. Both are cached in the process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from conversations.sql import load, rows, texts
from retrieval.search.query.lexemes import LexedTerm, TermKey, lexed_term
from retrieval.search.query.parser import ParsedQuery
from retrieval.search.query.word_forms import other_forms

_SQL = load("retrieval/search_prepare.sql")
# The same words are searched for again and again. Longer terms than nearly any identifier are not cached.
_MOST_CACHED, _LONGEST_CACHED = 10_000, 100
# Statistics that are restored from elsewhere change without a new count.
CACHED_SECONDS = 300
# A count is announced a moment before it is committed.
_SETTLED_SECONDS = 10

_lexed: dict[TermKey, LexedTerm] = {}


def lexed_terms(queries: Iterable[ParsedQuery]) -> Mapping[TermKey, LexedTerm]:
    """All terms of these queries with their lexemes; those that are not cached are read from the database."""
    keys = dict.fromkeys(
        (term, is_excluded)
        for query in queries
        for is_excluded, terms in ((False, query.terms), (True, query.excluded))
        for term in terms
    )
    lexed = {key: _lexed[key] for key in keys if key in _lexed}
    new = [key for key in keys if key not in lexed]
    if not new:
        return lexed
    values = {
        "terms": texts(term.text for term, _ in new),
        "phrases": texts(str(term.is_phrase) for term, _ in new),
        "exclusions": texts(str(is_excluded) for _, is_excluded in new),
        "forms": texts(" ".join(other_forms(term.text)) for term, _ in new),
    }
    for key, (whole, parts, forms, in_a_row, query) in zip(new, rows(_SQL["lexed_terms"], values), strict=True):
        lexed[key] = lexed_term(key[0], whole=whole, parts=parts, query=query, forms=forms, in_a_row=in_a_row)
    if len(_lexed) >= _MOST_CACHED:
        _lexed.clear()
    _lexed.update((key, lexed[key]) for key in new if len(key[0].text) <= _LONGEST_CACHED)
    return lexed


class _Counted(NamedTuple):
    counted_at: datetime
    frequencies: Mapping[str, float]
    since: float


_counted: list[_Counted] = []


def word_frequencies(counted_at: datetime | None, *, now: datetime, is_committed: bool) -> Mapping[str, float]:
    """The share of all messages that holds each of the most common lexemes, as PostgreSQL counted them at that moment.

    `is_committed`: the count is what every transaction sees.
    """
    if _counted and _counted[0].counted_at == counted_at and time.monotonic() < _counted[0].since + CACHED_SECONDS:
        return _counted[0].frequencies
    found = rows(_SQL["word_frequencies"])
    frequencies = dict(zip(*json.loads(found[0][0]), strict=False)) if found else {}
    if is_committed and counted_at is not None and (now - counted_at).total_seconds() > _SETTLED_SECONDS:
        _counted[:] = [_Counted(counted_at, frequencies, time.monotonic())]
    return frequencies
