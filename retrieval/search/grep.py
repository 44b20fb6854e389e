"""Searches what was said and kept: by words, or by a regular expression; page by page."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from conversations.content.lossless_values import is_storable, storable
from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid, LcmError, Unavailable
from conversations.humanize import counted
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from retrieval import limits
from retrieval.limits import Deadline
from retrieval.policy import RetrievalPolicy
from retrieval.search import cursors
from retrieval.search.cold import ColdSearch
from retrieval.search.criteria import Criteria, Narrowing, criteria, one_of, wrong
from retrieval.search.cursors import Position
from retrieval.search.matches import matches
from retrieval.search.ordering import Spot
from retrieval.search.page import Answered, Page
from retrieval.search.patterns.pattern_search import PatternSearch
from retrieval.search.patterns.pattern_translation import Pattern, literally, refused, translated
from retrieval.search.patterns.trigrams import is_used
from retrieval.search.prepare import Opened, Opening
from retrieval.search.query.parser import Question, parse, readings
from retrieval.search.recency import NewestWords
from retrieval.search.relevance.relevance_search import Found, FullText
from retrieval.search.snippets import Needles
from retrieval.types import GrepMode, GrepResult, GrepScope, GrepSort, ItemKind

# What is around a text that is sought as it stands.
_BLANK = string.whitespace + '"“”„«»'

# A list by relevance is made for so many matches, with room to spare, whoever asks for how many of them at a time;
# where an operator allows longer pages, for as many more.
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
class Grep:
    """One door for all kinds of search."""

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
        how = one_of(GrepMode, mode, "mode")
        where = one_of(GrepScope, scope, "scope")
        order = _order(how, sort, cold)
        self._check(query, how, limit)
        cap = self._cap(max_tokens)
        wanted = criteria(where=where, **narrowed)
        asked = GrepResult(
            query=query,
            mode=how,
            scope=where,
            conversation_id=wanted.conversation_id if wanted.conversation_ids == () else None,
            conversation_ids=wanted.conversation_ids,
            matches=(),
            sort=order,
            cold=cold,
        )
        said = (query, how.value, order.value, *(["cold"] if cold else []))

        def search() -> str:
            return cursors.fingerprint(workspace_id=self.scope.workspace_id, asked=wanted, said=said)

        position = cursors.read(cursor, search()) if cursor is not None else None
        page = Page(limit=limit, max_tokens=cap, tokens=self.tokens, position=position)
        if cold:
            answered = self._in_the_cold(asked, wanted, page)
        elif how is GrepMode.REGEX:
            answered = self._by_pattern(translated(query), wanted, page)
        else:
            answered = self._by_words(asked, wanted, page)
        if ItemKind.MESSAGE in wanted.kinds and not cold:
            answered = _with_what_is_cold(answered)
        return answered.result(asked, lambda after: cursors.written(search(), after))

    @contextmanager
    def ranked_messages(
        self, *, query: str, conversation_id: int, limit: int
    ) -> Iterator[tuple[Conversation, tuple[Found, ...]]]:
        """A conversation and its messages that answer the query best, not fetched; none if no word can be looked for.

        Whatever is read within is of the same moment, and bound by the same limits.
        """
        wanted = criteria(where=GrepScope.MESSAGES, conversation_id=conversation_id)
        asked = readings(storable(query[: self.policy.max_query_length]))
        with self._opened(wanted, asked, refusal=self._too_slow(), with_row=True) as (opened, deadline):
            answer = FullText(opened.reach, opened.meanings, limit).answer(asked)
            found = answer.found[:limit] if answer is not None else ()
            yield cast(Conversation, opened.conversation), found

    @contextmanager
    def _opened(
        self,
        wanted: Criteria,
        asked: Sequence[Question] = (),
        *,
        refusal: LcmError,
        with_row: bool = False,
        ranks: bool = True,
    ) -> Iterator[tuple[Opened, Deadline]]:
        """How far the search reaches and what these questions mean, until when: all in one question."""
        opening = Opening(wanted, self.scope, asked, with_row, ranks)
        milliseconds = self.policy.search_timeout_ms
        with limits.bounded(milliseconds=milliseconds, refusal=refusal, first=opening) as deadline:
            yield opening.opened(deadline.told), deadline

    def _too_slow(self) -> Unavailable:
        return Unavailable(
            f"The search took longer than {self.policy.search_timeout_ms} ms and was called off. Search one "
            "conversation, or for fewer and rarer words; whoever runs LCM can allow more with LCM_SEARCH_TIMEOUT_MS.",
            code="search_timeout",
        )

    def _pattern_too_slow(self) -> Invalid:
        return Invalid(
            f"The search took longer than {self.policy.search_timeout_ms} ms and was called off. Narrow it: search one "
            "conversation, write a word of three letters or more into the pattern, avoid nested repetition like (a+)+; "
            "whoever runs LCM can allow more with LCM_SEARCH_TIMEOUT_MS.",
            code="search_timeout",
        )

    def _by_words(self, asked: GrepResult, wanted: Criteria, page: Page) -> Answered:
        ranks = asked.sort is not GrepSort.RECENCY
        by_words = self._best if ranks else self._newest
        questions = readings(asked.query)
        with self._opened(wanted, questions, refusal=self._too_slow(), ranks=ranks) as (opened, deadline):
            answered = by_words(asked, questions, opened, page, deadline)
        return answered if answered is not None else self._literally(asked, wanted, page)

    def _best(
        self, asked: GrepResult, questions: Sequence[Question], opened: Opened, page: Page, deadline: Deadline
    ) -> Answered | None:
        """By relevance, among what there was when the first page was asked for."""
        before, reach = page.position, opened.reach
        if before is not None and before.at is not None:
            reach = reach.as_it_was(newest=before.newest, size=before.size, at=before.at)
        longest = max(_RANKED_FOR, self.policy.max_grep_results // _OF_THE_MOST)
        prefers_new, first_ones = asked.sort is GrepSort.HYBRID, page.limit if before is None else 0
        full_text = FullText(reach, opened.meanings, longest, prefers_new=prefers_new, shown=first_ones)
        answer = full_text.answer(questions)
        if answer is None:
            return None
        behind = [each for each in answer.found if before is None or each.key < before.key]
        found = [Spot(each.id, each.order_place, 0, worth=each.worth) for each in behind[: page.limit]]
        shown = matches(found, Needles.of(answer.lexemes), deadline=deadline)
        then = Position((), newest=reach.newest, size=reach.size, at=reach.at or answer.at)
        is_end = len(behind) <= page.limit
        return page.filled(
            shown,
            lambda place: then._replace(key=behind[place].key),
            has_more=not is_end,
            relaxed=answer.relaxed,
            used=answer.used,
            dropped=answer.dropped,
            bounded=answer.bounded,
            cold_messages=reach.cold,
            note=_BOUNDED if answer.bounded else _RANKED_ALL if is_end and answer.is_cut else None,
        )

    def _newest(
        self, asked: GrepResult, questions: Sequence[Question], opened: Opened, page: Page, deadline: Deadline
    ) -> Answered | None:
        before = page.position
        read = NewestWords(opened.reach, opened.meanings, page.limit + 1).read(
            questions,
            reading=before.reading if before is not None else None,
            key=before.key if before is not None else None,
        )
        if read is None:
            return None
        is_bounded = read.relaxed and read.how.is_bounded
        return page.filled(
            matches(read.spots[: page.limit], Needles.of(read.lexemes), deadline=deadline),
            lambda place: Position(read.spots[place].key, read.reading),
            has_more=len(read.spots) > page.limit,
            relaxed=read.relaxed,
            used=read.used,
            dropped=read.dropped,
            bounded=is_bounded,
            cold_messages=opened.reach.cold,
            note=_LEFT_OUT if is_bounded else None,
        )

    def _literally(self, asked: GrepResult, wanted: Criteria, page: Page) -> Answered:
        """A query that has nothing for full text search, such as `to be` or an arrow, sought as it stands."""
        pattern = self._as_it_stands(asked.query)
        return self._by_pattern(pattern, wanted, page)._replace(note=_TOO_COMMON, sort=GrepSort.RECENCY)

    def _as_it_stands(self, query: str) -> Pattern:
        """The query as an expression that matches its own text; Invalid if it has none."""
        positive = " ".join(term.text for term in parse(query).terms)
        # The parser takes `or` for an operator, which it is not in a text sought as it stands.
        text = (query if not parse(query).excluded else positive).strip(_BLANK)
        if not positive.strip(_BLANK) or not text:
            raise wrong("query", "There is nothing to search for in this; give at least one word that is not excluded.")
        return literally(text[: self.policy.max_pattern_length])

    def _by_pattern(self, pattern: Pattern, wanted: Criteria, page: Page) -> Answered:
        with self._opened(wanted, refusal=self._pattern_too_slow()) as (opened, deadline):
            reach = opened.reach
            search = PatternSearch(reach, page.limit + 1, by_trigrams=is_used(self.policy))
            key = page.position.key if page.position is not None else None
            spots = search.matching(pattern, deadline=deadline, key=key)
            shown = matches(spots[: page.limit], deadline=deadline)
        return page.filled(
            shown,
            lambda place: Position(spots[place].key),
            has_more=len(spots) > page.limit,
            cold_messages=reach.cold,
        )

    def _in_the_cold(self, asked: GrepResult, wanted: Criteria, page: Page) -> Answered:
        """Cold messages alone, the newest first: those with all of the words, or those that match."""
        if ItemKind.MESSAGE not in wanted.kinds:
            raise wrong("cold", "Only messages go cold: summaries and files are found without it.")
        before = page.position.key[0] if page.position is not None else None
        is_regex = asked.mode is GrepMode.REGEX
        questions = () if is_regex else (parse(asked.query),)
        refusal = self._pattern_too_slow() if is_regex else self._too_slow()
        with self._opened(wanted, questions, refusal=refusal) as (opened, deadline):
            reach = opened.reach
            search = ColdSearch(reach, page.limit + 1, deadline)
            found = None
            for question in questions:
                found = search.by_words(opened.meanings.understood(question, reach), before=before)
            if found is None:
                pattern = translated(asked.query) if is_regex else self._as_it_stands(asked.query)
                found = search.by_pattern(pattern, before=before)
            spots = found.spots[: page.limit]
            shown = matches(spots, deadline=deadline)
        is_cut = found.looked_to is not None
        answered = page.filled(
            shown,
            lambda place: Position((spots[place].order_place,)),
            has_more=len(found.spots) > page.limit,
            cold_messages=reach.cold,
            bounded=is_cut,
            note=_COLD_IN_PARTS if is_cut else None,
        )
        if is_cut and answered.behind is None:
            return answered._replace(behind=Position((found.looked_to,)))
        return answered

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


def _with_what_is_cold(answered: Answered) -> Answered:
    """The answer, with a word on what it could not hold."""
    if not answered.cold_messages:
        return answered
    said = _COLD.format(counted(answered.cold_messages, "message"))
    return answered._replace(note=said if answered.note is None else f"{answered.note} {said}")
