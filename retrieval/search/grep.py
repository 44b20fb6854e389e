"""Search messages, summaries and files: prepare, rank or take the newest, page."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from conversations.content.lossless_values import is_storable, storable
from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid, LcmError, Unavailable
from conversations.humanize import counted
from conversations.models import Conversation
from conversations.scope import EVERYTHING, Scope
from retrieval import limits
from retrieval.limits import Deadline
from retrieval.policy import RetrievalPolicy
from retrieval.search.cold import ColdSearch
from retrieval.search.criteria import Criteria, Narrowing, criteria, one_of, wrong
from retrieval.search.cursors import read_cursor, write_cursor
from retrieval.search.matches import matches
from retrieval.search.ordering import FoundRow
from retrieval.search.page import Page, PageContent, Position
from retrieval.search.patterns.pattern_search import PatternSearch
from retrieval.search.patterns.pattern_translation import Pattern, literally, refused, translated
from retrieval.search.patterns.trigrams import is_used
from retrieval.search.prepare import Prepared, prepare
from retrieval.search.query.parser import ParsedQuery, interpretations, parse
from retrieval.search.recency import RecencySearch
from retrieval.search.relevance.relevance_search import RankedMatch, RelevanceSearch
from retrieval.search.snippets import Needles
from retrieval.types import GrepMode, GrepResult, GrepScope, GrepSort, ItemKind

# What is stripped from a text that is searched literally.
_BLANK = string.whitespace + '"“”„«»'

# A list by relevance is made for so many matches, with room to spare, whatever the size of its pages; where an
# operator allows longer pages, for as many more.
_RANKED_FOR, _OF_THE_MOST = 20, 10

_TOO_COMMON = "None of these words is in the index, so the text was looked for as it stands, newest first."
_BOUNDED = (
    "Some of these words are in so many texts that not all of those were looked at, but only those that also have a "
    "rarer word, or else the newest; ask for something rarer to see everything."
)
_LEFT_OUT = "Texts with common words alone were left out; ask for something rarer to see everything."
_COLD = "{} here are cold: searched by their summaries, and word for word only with cold=true."
_COLD_IN_PARTS = (
    "There was time to look through some of the cold messages only: the cursor goes on with the older ones."
)
_RANKED_ALL = "Only the best were ranked, and these are the last of them; sort by recency to see everything."


@dataclass(frozen=True)
class SearchRequest:
    """What is searched for, how, and how much of it is given; once it is checked."""

    query: str
    mode: GrepMode
    scope: GrepScope
    sort: GrepSort
    criteria: Criteria
    cold: bool
    limit: int
    max_tokens: int
    cursor: str | None

    def fingerprint(self, workspace_id: int | None) -> str:
        """What tells one search from another, whatever the limits of its pages are."""
        # In the order of a set, it would tell another search in every process.
        narrowed = vars(self.criteria) | {"kinds": sorted(self.criteria.kinds)}
        how = (self.query, self.mode.value, self.sort.value, *(["cold"] if self.cold else []))
        return hashlib.sha256(repr((workspace_id, narrowed, how)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Grep:
    """All kinds of search."""

    policy: RetrievalPolicy
    scope: Scope = EVERYTHING
    tokens: TokenEstimator | None = None

    def run(
        self,
        *,
        query: str,
        mode: GrepMode | str,
        scope: GrepScope | str,
        sort: GrepSort | str | None,
        limit: int,
        max_tokens: int | None,
        cursor: str | None,
        cold: bool,
        narrowed: Narrowing,
    ) -> GrepResult:
        """See `RetrievalEngine.grep`."""
        how, where = one_of(GrepMode, mode, "mode"), one_of(GrepScope, scope, "scope")
        order = _order(how, sort, cold)
        self._check(query, how, limit)
        cap = self._cap(max_tokens)
        wanted = criteria(where=where, **narrowed)
        request = SearchRequest(query, how, where, order, wanted, cold, limit, cap, cursor)
        search = request.fingerprint(self.scope.workspace_id)
        position = _position(cursor, search) if cursor is not None else None
        page = Page(limit=limit, max_tokens=cap, tokens=self.tokens, position=position)
        content = self._content(request, page)
        behind = content.behind
        return GrepResult(
            query=query,
            mode=how,
            scope=where,
            conversation_id=wanted.conversation_id if wanted.conversation_ids == () else None,
            conversation_ids=wanted.conversation_ids,
            matches=content.matches,
            relaxed=content.relaxed,
            used=content.used,
            dropped=content.dropped,
            bounded=content.bounded,
            note=_note(content, request),
            sort=content.sort or order,
            more=behind is not None,
            cursor=_cursor(behind, search) if behind is not None else None,
            cold=cold,
            cold_messages=content.cold_messages,
        )

    @contextmanager
    def ranked_messages(
        self, *, query: str, conversation_id: int, limit: int
    ) -> Iterator[tuple[Conversation, tuple[RankedMatch, ...]]]:
        """A conversation and its messages that match the query best, not fetched; none if there is no word to find.

        Whatever is read within is of the same snapshot, and bound by the same limits.
        """
        wanted = criteria(where=GrepScope.MESSAGES, conversation_id=conversation_id)
        queries = interpretations(storable(query[: self.policy.max_query_length]))
        with self._prepared(wanted, queries, refusal=self._too_slow()) as (prepared, _):
            best = RelevanceSearch(prepared, limit).best(queries)
            yield self.scope.conversation(conversation_id), best.found[:limit] if best is not None else ()

    @contextmanager
    def _prepared(
        self, wanted: Criteria, queries: Sequence[ParsedQuery] = (), *, refusal: LcmError
    ) -> Iterator[tuple[Prepared, Deadline]]:
        with limits.bounded(milliseconds=self.policy.search_timeout_ms, refusal=refusal) as deadline:
            yield prepare(wanted, self.scope, queries), deadline

    def _too_slow(self) -> Unavailable:
        return Unavailable(
            f"The search took longer than {self.policy.search_timeout_ms} ms and was called off. Search one "
            "conversation, or for fewer and rarer words; the operator can allow more with LCM_SEARCH_TIMEOUT_MS.",
            code="search_timeout",
        )

    def _pattern_too_slow(self) -> Invalid:
        return Invalid(
            f"The search took longer than {self.policy.search_timeout_ms} ms and was called off. Narrow it: search one "
            "conversation, write a word of three letters or more into the pattern, avoid nested repetition like (a+)+; "
            "the operator can allow more with LCM_SEARCH_TIMEOUT_MS.",
            code="search_timeout",
        )

    def _content(self, request: SearchRequest, page: Page) -> PageContent:
        if request.cold:
            return self._in_cold_storage(request, page)
        if request.mode is GrepMode.REGEX:
            return self._by_pattern(translated(request.query), request, page)
        queries = interpretations(request.query)
        by_words = self._newest if request.sort is GrepSort.RECENCY else self._best
        with self._prepared(request.criteria, queries, refusal=self._too_slow()) as (prepared, _):
            content = by_words(request, queries, prepared, page)
        return content if content is not None else self._literally(request, page)

    def _best(
        self, request: SearchRequest, queries: Sequence[ParsedQuery], prepared: Prepared, page: Page
    ) -> PageContent | None:
        """By relevance, among what there was at the first page."""
        before, filters = page.position, prepared.filters
        if before is not None and before.at is not None:
            filters = filters.as_it_was(newest=before.newest, size=before.size, at=before.at)
            prepared = replace(prepared, filters=filters)
        longest = max(_RANKED_FOR, self.policy.max_grep_results // _OF_THE_MOST)
        prefers_new, on_first_page = request.sort is GrepSort.HYBRID, page.limit if before is None else 0
        best = RelevanceSearch(prepared, longest, prefers_new=prefers_new, shown=on_first_page).best(queries)
        if best is None:
            return None
        behind = [each for each in best.found if before is None or each.key < before.key]
        found = [FoundRow(each.id, each.order_place, 0, worth=each.worth) for each in behind[: page.limit]]
        then = Position((), newest=filters.newest, size=filters.size, at=filters.at or best.at)
        is_end = len(behind) <= page.limit
        return page.filled(
            matches(found, Needles.of(best.lexemes)),
            lambda place: then._replace(key=behind[place].key),
            has_more=not is_end,
            relaxed=best.relaxed,
            used=best.used,
            dropped=best.dropped,
            bounded=best.bounded,
            cold_messages=filters.cold,
            note=_BOUNDED if best.bounded else _RANKED_ALL if is_end and best.is_cut else None,
        )

    def _newest(
        self, request: SearchRequest, queries: Sequence[ParsedQuery], prepared: Prepared, page: Page
    ) -> PageContent | None:
        before = page.position
        search = RecencySearch(prepared, page.limit + 1, before.key if before is not None else None)
        newest = search.first(queries, interpretation=before.interpretation if before is not None else None)
        if newest is None:
            return None
        return page.filled(
            matches(newest.found[: page.limit], Needles.of(newest.lexemes)),
            lambda place: Position(newest.found[place].key, newest.interpretation),
            has_more=len(newest.found) > page.limit,
            relaxed=newest.relaxed,
            used=newest.used,
            dropped=newest.dropped,
            bounded=newest.bounded,
            cold_messages=prepared.filters.cold,
            note=_LEFT_OUT if newest.bounded else None,
        )

    def _literally(self, request: SearchRequest, page: Page) -> PageContent:
        """Search literally for a query without a word for full text search, such as `to be` or an arrow."""
        content = self._by_pattern(self._literal_pattern(request.query), request, page)
        return content._replace(note=_TOO_COMMON, sort=GrepSort.RECENCY)

    def _literal_pattern(self, query: str) -> Pattern:
        """The query as an expression that matches its own text; Invalid if it has none."""
        positive = " ".join(term.text for term in parse(query).terms)
        # The parser takes `or` for an operator, which it is not in a literal text.
        text = (query if not parse(query).excluded else positive).strip(_BLANK)
        if not positive.strip(_BLANK) or not text:
            raise wrong("query", "There is nothing to search for in this; give at least one word that is not excluded.")
        return literally(text[: self.policy.max_pattern_length])

    def _by_pattern(self, pattern: Pattern, request: SearchRequest, page: Page) -> PageContent:
        with self._prepared(request.criteria, refusal=self._pattern_too_slow()) as (prepared, deadline):
            search = PatternSearch(prepared.filters, page.limit + 1, by_trigrams=is_used(self.policy))
            key = page.position.key if page.position is not None else None
            found = search.matching(pattern, deadline=deadline, key=key)
            shown = matches(found[: page.limit])
        return page.filled(
            shown,
            lambda place: Position(found[place].key),
            has_more=len(found) > page.limit,
            cold_messages=prepared.filters.cold,
        )

    def _in_cold_storage(self, request: SearchRequest, page: Page) -> PageContent:
        """Cold messages alone, the newest first: those with all of the words, or those that match."""
        if ItemKind.MESSAGE not in request.criteria.kinds:
            raise wrong("cold", "Only messages go cold: summaries and files are found without it.")
        before = page.position.key[0] if page.position is not None else None
        is_regex = request.mode is GrepMode.REGEX
        queries = () if is_regex else (parse(request.query),)
        refusal = self._pattern_too_slow() if is_regex else self._too_slow()
        with self._prepared(request.criteria, queries, refusal=refusal) as (prepared, deadline):
            search = ColdSearch(prepared.filters, page.limit + 1, deadline)
            query = prepared.compiled(queries[0]) if queries else None
            if query is not None:
                result = search.by_words(query, before=before)
            else:
                pattern = translated(request.query) if is_regex else self._literal_pattern(request.query)
                result = search.by_pattern(pattern, before=before)
            shown = matches(result.found[: page.limit])
        is_cut = result.searched_to is not None
        content = page.filled(
            shown,
            lambda place: Position((result.found[place].order_place,)),
            has_more=len(result.found) > page.limit,
            cold_messages=prepared.filters.cold,
            bounded=is_cut,
            note=_COLD_IN_PARTS if is_cut else None,
        )
        if is_cut and content.behind is None:
            return content._replace(behind=Position((result.searched_to,)))
        return content

    def _check(self, query: str, mode: GrepMode, limit: int) -> None:
        most = self.policy.max_grep_results
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
            raise wrong("limit", f"{str(limit)[:80]!r} is not a whole number from 1 to {most}.")
        longest = self.policy.max_pattern_length if mode is GrepMode.REGEX else self.policy.max_query_length
        if not isinstance(query, str) or not query.strip():
            raise wrong("query", "There is nothing to search for.")
        if len(query) > longest:
            raise wrong("query", f"{counted(len(query), 'character')} are too many; the most are {longest}.")
        if not is_storable(query):
            error = wrong("query", "No text holds a NUL or a lone surrogate, so it cannot be searched for.")
            raise refused(error.detail) if mode is GrepMode.REGEX else error

    def _cap(self, max_tokens: int | None) -> int:
        if max_tokens is None:
            return self.policy.max_grep_tokens
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise wrong("max_tokens", f"{str(max_tokens)[:80]!r} is not a whole number of tokens from 1 up.")
        return min(max_tokens, self.policy.max_grep_tokens)


def _order(mode: GrepMode, sort: GrepSort | str | None, cold: bool) -> GrepSort:
    if sort is None:
        return GrepSort.RECENCY if mode is GrepMode.REGEX or cold else GrepSort.RELEVANCE
    order = one_of(GrepSort, sort, "sort")
    if cold and order is not GrepSort.RECENCY:
        raise wrong("sort", "Cold texts are not indexed, so nothing is known to rank them by: sort them by recency.")
    if mode is GrepMode.REGEX and order is not GrepSort.RECENCY:
        raise wrong("sort", "A regular expression matches or does not: its matches are sorted by recency only.")
    return order


def _note(content: PageContent, request: SearchRequest) -> str | None:
    """The note of the page, with a sentence on the cold messages that it could not hold."""
    is_without_cold = content.cold_messages and ItemKind.MESSAGE in request.criteria.kinds and not request.cold
    about_cold = _COLD.format(counted(content.cold_messages, "message")) if is_without_cold else None
    return " ".join(filter(None, (content.note, about_cold))) or None


def _cursor(position: Position, search: str) -> str:
    at = position.at.isoformat() if position.at is not None else None
    return write_cursor(search, [list(position.key), *position[1:4], at], of="grep")


def _position(cursor: str, search: str) -> Position:
    key, interpretation, newest, size, at = read_cursor(
        cursor,
        search,
        of="grep",
        mismatch="This cursor belongs to another search; only limit and max_tokens may change from page to page",
    )
    return Position(tuple(key), interpretation, newest, size, datetime.fromisoformat(at) if at is not None else None)
