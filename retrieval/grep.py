"""Searches what was said: by words, ranked, or by a regular expression, newest first."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from conversations.errors import Invalid, Unavailable
from conversations.exactness import is_storable, storable
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from conversations.words import counted
from retrieval import limits
from retrieval.full_text import Answer, Found, FullText
from retrieval.matches import Excerpt, matches
from retrieval.pattern_search import PatternSearch, Spot
from retrieval.patterns import Pattern, literally, refused, translated
from retrieval.policy import RetrievalPolicy
from retrieval.query import parse
from retrieval.snippets import snippet
from retrieval.types import GrepMode, GrepResult, GrepScope, Match, Snippet

E = TypeVar("E", bound=StrEnum)

# What is around a text that is sought as it stands.
_BLANK = string.whitespace + '"“”„«»'

_TOO_COMMON = "None of these words is in the index, so the text was looked for as it stands, newest first."
_BOUNDED = (
    "Some of these words are in so many texts that not all of those were looked at, but only those that also have a "
    "rarer word, or else the newest; ask for something rarer to see everything."
)


@dataclass(frozen=True)
class Grep:
    """One door for both kinds of search."""

    policy: RetrievalPolicy
    scope: Scope = EVERYTHING

    def run(
        self, *, query: str, mode: GrepMode | str, scope: GrepScope | str, conversation_id: int | None, limit: int
    ) -> GrepResult:
        """See `RetrievalEngine.grep`."""
        how = _one_of(GrepMode, mode, "mode")
        where = _one_of(GrepScope, scope, "scope")
        self._check(query, how, limit)
        asked = GrepResult(query=query, mode=how, scope=where, conversation_id=conversation_id, matches=())
        if how is GrepMode.REGEX:
            return replace(asked, matches=self._by_pattern(translated(query), asked, limit))
        return self._by_words(asked, limit)

    def ranked_messages(self, *, query: str, conversation_id: int, limit: int) -> tuple[Found, ...]:
        """The messages of a conversation that answer the query best, not fetched; none if no word can be looked for."""
        with limits.bounded(milliseconds=self.policy.search_timeout_ms, refusal=self._too_slow()):
            answer = FullText(self.scope).answer(
                query=storable(query[: self.policy.max_query_length]),
                where=GrepScope.MESSAGES,
                conversation_id=conversation_id,
                limit=limit,
            )
        return answer.found if answer is not None else ()

    def _too_slow(self) -> Unavailable:
        return Unavailable(
            f"The search took longer than {self.policy.search_timeout_ms} ms and was called off. Search one "
            "conversation, or for fewer and rarer words; whoever runs LCM can allow more with LCM_SEARCH_TIMEOUT_MS.",
            code="search_timeout",
        )

    def _by_words(self, asked: GrepResult, limit: int) -> GrepResult:
        with limits.bounded(milliseconds=self.policy.search_timeout_ms, refusal=self._too_slow()):
            answer = FullText(self.scope).answer(
                query=asked.query, where=asked.scope, conversation_id=asked.conversation_id, limit=limit
            )
            found = matches([_excerpt(each, answer) for each in answer.found]) if answer is not None else ()
        if answer is None:
            return self._literally(asked, limit)
        return replace(
            asked,
            matches=found,
            relaxed=answer.relaxed,
            used=answer.used,
            dropped=answer.dropped,
            bounded=answer.bounded,
            note=_BOUNDED if answer.bounded else None,
        )

    def _literally(self, asked: GrepResult, limit: int) -> GrepResult:
        """A query that has nothing for full text search, such as `to be` or an arrow, sought as it stands."""
        positive = " ".join(term.text for term in parse(asked.query).terms)
        # The parser takes `or` for an operator, which it is not in a text sought as it stands.
        text = (asked.query if not parse(asked.query).excluded else positive).strip(_BLANK)
        if not positive.strip(_BLANK) or not text:
            raise _wrong(
                "query", "There is nothing to search for in this; give at least one word that is not excluded."
            )
        pattern = literally(text[: self.policy.max_pattern_length])
        return replace(asked, matches=self._by_pattern(pattern, asked, limit), note=_TOO_COMMON)

    def _by_pattern(self, pattern: Pattern, asked: GrepResult, limit: int) -> tuple[Match, ...]:
        refusal = Invalid(
            f"The search took longer than {self.policy.search_timeout_ms} ms and was called off. Narrow it: search one "
            "conversation, write a word of three letters or more into the pattern, avoid nested repetition like (a+)+; "
            "whoever runs LCM can allow more with LCM_SEARCH_TIMEOUT_MS.",
            code="search_timeout",
        )
        search = PatternSearch(self.scope)
        spots: list[Spot] = []
        with limits.bounded(milliseconds=self.policy.search_timeout_ms, refusal=refusal) as deadline:
            if asked.conversation_id is not None:
                self.scope.conversation(asked.conversation_id)
            if asked.scope is not GrepScope.SUMMARIES:
                spots += search.messages(pattern, conversation_id=asked.conversation_id, limit=limit, deadline=deadline)
            if asked.scope is not GrepScope.MESSAGES:
                # Once there are as many messages as may be given, only newer history can still come before them.
                oldest = _oldest(spots, asked.conversation_id) if len(spots) >= limit else None
                deadline.impose()
                spots += search.summaries(pattern, conversation_id=asked.conversation_id, limit=limit, since=oldest)
            found = matches([Excerpt(spot.id, snippet=spot.snippet) for spot in spots])
        if asked.conversation_id is not None:
            newest_first = sorted(found, key=lambda match: match.last_seq, reverse=True)
        else:
            newest_first = sorted(found, key=lambda match: match.created_at, reverse=True)
        return tuple(newest_first[:limit])

    def _check(self, query: str, mode: GrepMode, limit: int) -> None:
        most = self.policy.max_grep_results
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
            raise _wrong("limit", f"{str(limit)[:80]!r} is not a whole number from 1 to {most}.")
        longest = self.policy.max_pattern_length if mode is GrepMode.REGEX else self.policy.max_query_length
        if not isinstance(query, str) or not query.strip():
            raise _wrong("query", "There is nothing to search for.")
        if len(query) > longest:
            raise _wrong("query", f"{counted(len(query), 'character')} are too many; the most are {longest}.")
        if not is_storable(query):
            error = _wrong("query", "No text holds a NUL or a lone surrogate, so it cannot be searched for.")
            raise refused(error.detail) if mode is GrepMode.REGEX else error


def _oldest(spots: Sequence[Spot], conversation_id: int | None) -> Spot:
    if conversation_id is not None:
        return min(spots, key=lambda spot: spot.seq)
    return min(spots, key=lambda spot: spot.created_at)


def _one_of(kind: type[E], value: str, name: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise _wrong(name, f"{str(value)[:80]!r} is none of {', '.join(kind)}.") from None


def _wrong(name: str, sentence: str) -> Invalid:
    """The refusal of one param, as params themselves refuse: whose bound it breaks is nothing to the caller."""
    return Invalid(f"{name}: {sentence}", code="invalid_params", errors={name: [sentence]})


def _excerpt(found: Found, answer: Answer) -> Excerpt:
    def shown(content: str) -> Snippet:
        return snippet(content, answer.lexemes)

    return Excerpt(found.id, worth=found.worth, show=shown)
