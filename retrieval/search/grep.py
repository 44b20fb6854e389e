"""Search messages, summaries and files: prepare, rank or take the newest, page."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from conversations.content.lossless_values import storable
from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid, LcmError, Unavailable
from conversations.humanize import counted
from conversations.models import Conversation
from conversations.scope import EVERYTHING, Scope
from retrieval.policy import RetrievalPolicy
from retrieval.search.cold import ColdSearch
from retrieval.search.page import Found, FoundRow, Position, fitting, matches, read_position, write_position
from retrieval.search.patterns.pattern_search import PatternSearch
from retrieval.search.patterns.pattern_translation import Pattern, literally, translated
from retrieval.search.patterns.trigrams import is_used
from retrieval.search.prepare import Deadline, Prepared, bounded, prepare
from retrieval.search.query.parser import ParsedQuery, interpretations, parse
from retrieval.search.recency import RecencySearch
from retrieval.search.relevance.relevance_search import RankedMatch, RelevanceSearch
from retrieval.search.request import SearchRequest, wrong
from retrieval.search.snippets import Needles
from retrieval.types import GrepMode, GrepResult, GrepScope, GrepSort, ItemKind, Match

# A list by relevance is made for so many matches, with room to spare, whatever the size of its pages.
RANKED_FOR = 20
# What is stripped from a text that is searched literally.
_BLANK = string.whitespace + '"“”„«»'

_TOO_COMMON = "None of these words is in the index, so the text was looked for as it stands, newest first."
_BOUNDED = (
    "Some of these words are in so many texts that not all of those were looked at, but only those that also have a "
    "rarer word, or else the newest; ask for something rarer to see everything."
)
_RANKED_ALL = "Only the best were ranked, and these are the last of them; sort by recency to see everything."
_COLD_IN_PARTS = (
    "There was time to look through some of the cold messages only: the cursor goes on with the older ones."
)
_COLD = "{} here are cold: searched by their summaries, and word for word only with cold=true."
_TOO_SLOW = (
    "The search took longer than {} ms and was called off. {}; the operator can allow more with LCM_SEARCH_TIMEOUT_MS."
)
_FEWER_WORDS = "Search one conversation, or for fewer and rarer words"
_SIMPLER_PATTERN = (
    "Narrow it: search one conversation, write a word of three letters or more into the pattern, avoid nested "
    "repetition like (a+)+"
)


@dataclass(frozen=True)
class Grep:
    """All kinds of search."""

    policy: RetrievalPolicy
    scope: Scope = EVERYTHING
    tokens: TokenEstimator | None = None

    def run(self, request: SearchRequest) -> GrepResult:
        """One page of matches; see `RetrievalEngine.grep`."""
        request = request.validated(self.policy)
        fingerprint = request.fingerprint(self.scope.workspace_id)
        position = read_position(request.cursor, fingerprint) if request.cursor is not None else None
        with self._bounded(is_pattern=request.mode is GrepMode.REGEX) as deadline:
            found, cold_messages = self._found(request, position, deadline)
            shown = matches(found.rows[: request.limit], Needles.of(found.lexemes))
        fits = self._fitting(shown, request.max_tokens)
        has_more = fits < len(shown) or len(found.rows) > request.limit
        behind = found.position_of(fits - 1) if has_more and fits else found.ends_at
        is_without_cold = cold_messages and ItemKind.MESSAGE in request.kinds and not request.cold
        about_cold = _COLD.format(counted(cold_messages, "message")) if is_without_cold else None
        return GrepResult(
            query=request.query,
            mode=request.mode,
            scope=request.scope,
            conversation_id=None if request.conversation_ids else request.conversation_id,
            conversation_ids=request.conversation_ids,
            matches=shown[:fits],
            relaxed=found.relaxed,
            used=found.used,
            dropped=found.dropped,
            bounded=found.bounded,
            note=" ".join(filter(None, (found.note, about_cold))) or None,
            sort=found.sort or request.order,
            more=behind is not None,
            cursor=write_position(behind, fingerprint) if behind is not None else None,
            cold=request.cold,
            cold_messages=cold_messages,
        )

    @contextmanager
    def ranked_messages(
        self, *, query: str, conversation_id: int, limit: int
    ) -> Iterator[tuple[Conversation, tuple[RankedMatch, ...]]]:
        """A conversation and its messages that match the query best, not fetched; none if there is no word to find.

        Whatever is read within is of the same snapshot, and bound by the same limits.
        """
        query = storable(query[: self.policy.max_query_length])
        request = SearchRequest(query, scope=GrepScope.MESSAGES, conversation_id=conversation_id)
        queries = interpretations(query)
        with self._bounded():
            best = RelevanceSearch(prepare(request, self.scope, queries), limit).best(queries)
            yield self.scope.conversation(conversation_id), best.found[:limit] if best is not None else ()

    def _bounded(self, *, is_pattern: bool = False) -> AbstractContextManager[Deadline]:
        timeout = self.policy.search_timeout_ms

        def too_slow() -> LcmError:
            if is_pattern:
                return Invalid(_TOO_SLOW.format(timeout, _SIMPLER_PATTERN), code="search_timeout")
            return Unavailable(_TOO_SLOW.format(timeout, _FEWER_WORDS), code="search_timeout")

        return bounded(milliseconds=timeout, refusal=too_slow)

    def _fitting(self, shown: Sequence[Match], max_tokens: int | None) -> int:
        """How many of the matches have room on the page."""
        most = self.policy.max_grep_tokens
        count = self.tokens.count if self.tokens is not None else len
        return fitting(shown, max_tokens=most if max_tokens is None else min(max_tokens, most), count=count)

    def _found(self, request: SearchRequest, position: Position | None, deadline: Deadline) -> tuple[Found, int]:
        """What the search finds behind a position, and how many messages it leaves out because they are cold."""
        is_pattern = request.mode is GrepMode.REGEX
        queries = () if is_pattern else interpretations(request.query)
        prepared = prepare(request, self.scope, queries)
        search = _Search(self.policy, request, prepared, position, deadline)
        if request.cold:
            found = search.in_cold_storage()
        elif is_pattern:
            found = search.by_pattern(translated(request.query))
        elif request.order is GrepSort.RECENCY:
            found = search.newest(queries) or search.literally()
        else:
            found = search.best(queries) or search.literally()
        return found, prepared.filters.cold


@dataclass(frozen=True)
class _Search:
    """One search from a position on."""

    policy: RetrievalPolicy
    request: SearchRequest
    prepared: Prepared
    position: Position | None
    deadline: Deadline

    @property
    def _key(self) -> tuple[Any, ...] | None:
        return self.position.key if self.position is not None else None

    def best(self, queries: Sequence[ParsedQuery]) -> Found | None:
        """By relevance, among what there was at the first page."""
        before, prepared, limit = self.position, self.prepared, self.request.limit
        if before is not None and before.at is not None:
            filters = prepared.filters.as_it_was(newest=before.newest, size=before.size, at=before.at)
            prepared = replace(prepared, filters=filters)
        best = RelevanceSearch(
            prepared,
            RANKED_FOR,
            prefers_new=self.request.order is GrepSort.HYBRID,
            shown=limit if before is None else 0,
        ).best(queries)
        if best is None:
            return None
        behind = [each for each in best.found if before is None or each.key < before.key]
        is_end = len(behind) <= limit
        filters = prepared.filters
        then = Position((), newest=filters.newest, size=filters.size, at=filters.at or best.at)
        return Found(
            [FoundRow(each.id, each.order_place, 0, worth=each.worth) for each in behind[: limit + 1]],
            lambda place: then._replace(key=behind[place].key),
            lexemes=best.lexemes,
            relaxed=best.relaxed,
            used=best.used,
            dropped=best.dropped,
            bounded=best.bounded,
            note=_BOUNDED if best.bounded else _RANKED_ALL if is_end and best.is_cut else None,
        )

    def newest(self, queries: Sequence[ParsedQuery]) -> Found | None:
        """The newest first."""
        interpretation = self.position.interpretation if self.position is not None else None
        search = RecencySearch(self.prepared, self.request.limit + 1, self._key)
        return search.first(queries, interpretation=interpretation)

    def literally(self) -> Found:
        """The newest that hold a query without a word for full text search, such as `to be` or an arrow."""
        return replace(self.by_pattern(self._literal_pattern()), note=_TOO_COMMON, sort=GrepSort.RECENCY)

    def _literal_pattern(self) -> Pattern:
        """The query as an expression that matches its own text; Invalid if it has none."""
        query = self.request.query
        positive = " ".join(term.text for term in parse(query).terms)
        # The parser takes `or` for an operator, which it is not in a literal text.
        text = (query if not parse(query).excluded else positive).strip(_BLANK)
        if not positive.strip(_BLANK) or not text:
            raise wrong("query", "There is nothing to search for in this; give at least one word that is not excluded.")
        return literally(text[: self.policy.max_pattern_length])

    def by_pattern(self, pattern: Pattern) -> Found:
        """The newest that match an expression."""
        search = PatternSearch(self.prepared.filters, self.request.limit + 1, by_trigrams=is_used(self.policy))
        found = search.matching(pattern, deadline=self.deadline, key=self._key)
        return Found(found, lambda place: Position(found[place].key))

    def in_cold_storage(self) -> Found:
        """Cold messages alone, the newest first: those with all of the words, or those that match."""
        request = self.request
        before = self.position.key[0] if self.position is not None else None
        search = ColdSearch(self.prepared.filters, request.limit + 1, self.deadline)
        is_pattern = request.mode is GrepMode.REGEX
        query = None if is_pattern else self.prepared.compiled(parse(request.query))
        if query is not None:
            result = search.by_words(query, before=before)
        else:
            pattern = translated(request.query) if is_pattern else self._literal_pattern()
            result = search.by_pattern(pattern, before=before)
        is_cut = result.searched_to is not None
        return Found(
            result.found,
            lambda place: Position((result.found[place].order_place,)),
            ends_at=Position((result.searched_to,)) if is_cut else None,
            bounded=is_cut,
            note=_COLD_IN_PARTS if is_cut else None,
        )
