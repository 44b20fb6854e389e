"""Search messages, summaries and files, in each mode and order, in pages.

A page has at most so many matches and tokens, and a signed cursor if there are more.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from compaction.llm.embeddings import EmbedderPolicy
from compaction.sources import withheld_in
from conversations.content.lossless_values import storable
from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid, LcmError, Unavailable, param_error
from conversations.humanize import counted
from conversations.models import Conversation, Summary
from conversations.scope import EVERYTHING, Scope
from conversations.sql import array, load, rows, texts
from conversations.store.cursors import read_cursor, write_cursor
from conversations.store.read import messages_of
from conversations.types import Role
from retrieval.policy import RetrievalPolicy
from retrieval.search.cold import ColdSearch
from retrieval.search.filters import SEARCHABLES
from retrieval.search.patterns.pattern_search import PatternSearch
from retrieval.search.patterns.pattern_translation import Pattern, literally, translated
from retrieval.search.patterns.trigrams import is_used
from retrieval.search.prepare import Deadline, Prepared, bounded, prepare
from retrieval.search.query.parser import interpretations, parse
from retrieval.search.recency import RecencySearch
from retrieval.search.relevance.relevance_search import RelevanceSearch
from retrieval.search.request import BEGINNING, BY_MEANING, Found, FoundRow, Position, SearchRequest
from retrieval.search.semantic_search import SemanticSearch
from retrieval.search.snippets import SEARCHED, Needles, snippet
from retrieval.semantic import questions
from retrieval.semantic.questions import Question
from retrieval.types import GrepMode, GrepResult, GrepScope, GrepSort, ItemKind, Match, Snippet

# The tokens of a match's JSON without its texts (names, ids, times, punctuation), and of each highlight.
FRAME_TOKENS, HIGHLIGHT_TOKENS = 160, 8
_REFUSAL = (
    "This is not a cursor that grep gave for this search, or it was changed; only limit and max_tokens may change from "
    "page to page"
)

_SQL = load("retrieval/search/matches.sql")
_SHOWN = {
    each.kind: _SQL[f"shown_{each.name}"].format(seq=each.seq, tokens=each.tokens, text=each.text)
    for each in SEARCHABLES
}
_COVERING = _SQL["covering_summaries"].format(above=_SQL["above"])
# The columns of the statements in _SHOWN.
_COLUMNS = (
    "id", "conversation_id", "session_id", "first_seq", "last_seq", "created_at", "token_count", "content",
    "covered_by", "active", "role", "author", "depth", "file_name", "has_quarantines",
)  # fmt: skip

# Characters that are stripped from both ends of a text that is searched literally.
_BLANK = string.whitespace + '"“”„«»'

_TOO_COMMON = "None of these words is in the index, so the text was looked for as it stands, newest first."
_COLD = "{} here are cold: searched by their summaries, and word for word only by grep with cold=true."
_TOO_SLOW = "The search took longer than {} ms and was cancelled. {}; LCM_SEARCH_TIMEOUT_MS can allow more."
_FEWER_WORDS = "Search one conversation, or for fewer and rarer words"
_SIMPLER_PATTERN = (
    "Narrow it: search one conversation, write a word of three letters or more into the pattern, avoid nested "
    "repetition like (a+)+"
)


@dataclass(frozen=True)
class Grep:
    """Runs searches of all modes and orders."""

    policy: RetrievalPolicy
    scope: Scope = EVERYTHING
    tokens: TokenEstimator = field(default_factory=TokenEstimator.from_settings)

    def run(self, request: SearchRequest) -> GrepResult:
        """Return one page of matches; see `RetrievalEngine.grep`."""
        request = request.validated(self.policy)
        fingerprint = request.fingerprint(self.scope.workspace_id)
        position = read_position(request.cursor, fingerprint) if request.cursor is not None else BEGINNING
        question = questions.question_of(request.query) if request.mode in BY_MEANING else None
        with self._bounded(is_pattern=request.mode is GrepMode.REGEX) as deadline:
            found, cold_messages = self._found(request, position, deadline, question)
            shown = matches(found.rows[: request.limit], Needles.of(found.lexemes))
        most = self.policy.max_grep_tokens
        max_tokens = most if request.max_tokens is None else min(request.max_tokens, most)
        fits = fitting(shown, max_tokens=max_tokens, count=self.tokens.count)
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
    ) -> Iterator[tuple[Conversation, Sequence[FoundRow], Mapping[str, float]]]:
        """Yield a conversation, its best matches of a query, and the lexemes' weights.

        Statements inside this context use the same snapshot and have the same time limit.
        """
        query = storable(query[: self.policy.max_query_length])
        request = SearchRequest(query, scope=GrepScope.MESSAGES, conversation_id=conversation_id)
        queries = interpretations(query)
        question = questions.embed_or_none(query) if EmbedderPolicy.from_settings().embedder_url else None
        with self._bounded():
            prepared = prepare(request, self.scope, queries)
            if question is None:
                found = RelevanceSearch(prepared, limit, wanted=limit).first(queries)
            else:
                found = SemanticSearch(prepared, question, limit, with_words=True).ranked(queries)
            conversation = self.scope.conversation(conversation_id)
            yield (conversation, found.rows, found.lexemes) if found is not None else (conversation, (), {})

    def _bounded(self, *, is_pattern: bool = False) -> AbstractContextManager[Deadline]:
        timeout = self.policy.search_timeout_ms

        def too_slow() -> LcmError:
            if is_pattern:
                return Invalid(_TOO_SLOW.format(timeout, _SIMPLER_PATTERN), code="search_timeout")
            return Unavailable(_TOO_SLOW.format(timeout, _FEWER_WORDS), code="search_timeout")

        return bounded(milliseconds=timeout, refusal=too_slow)

    def _found(
        self, request: SearchRequest, position: Position, deadline: Deadline, question: Question | LcmError | None
    ) -> tuple[Found, int]:
        """Return the matches after a position, and the number of cold messages."""
        is_pattern = request.mode is GrepMode.REGEX
        queries = () if is_pattern else interpretations(request.query)
        prepared, most = prepare(request, self.scope, queries), request.limit + 1

        def by_pattern(pattern: Pattern) -> Found:
            search = PatternSearch(prepared.filters, most, deadline, by_trigrams=is_used(self.policy))
            return search.first(pattern, position.key)

        found: Found | None
        if request.cold:
            found = self._in_cold_storage(request, prepared, ColdSearch(prepared.filters, most, deadline, position))
        elif is_pattern:
            found = by_pattern(translated(request.query))
        elif question is not None:
            with_words = request.mode is GrepMode.HYBRID
            found = SemanticSearch(prepared, question, most, position, with_words=with_words).first(queries)
        elif request.order is GrepSort.RECENCY:
            found = RecencySearch(prepared, most, position).first(queries)
        else:
            prefers_new = request.order is GrepSort.HYBRID
            found = RelevanceSearch(prepared, most, position, prefers_new=prefers_new).first(queries)
        if found is None:
            # The query has no indexed word, such as `to be`.
            found = by_pattern(self._literal_pattern(request.query))
            found = replace(found, note=_TOO_COMMON, sort=GrepSort.RECENCY)
        return found, prepared.filters.cold

    def _in_cold_storage(self, request: SearchRequest, prepared: Prepared, search: ColdSearch) -> Found:
        if request.mode is GrepMode.REGEX:
            return search.by_pattern(translated(request.query))
        query = prepared.compiled(parse(request.query))
        return search.by_words(query) if query else search.by_pattern(self._literal_pattern(request.query))

    def _literal_pattern(self, query: str) -> Pattern:
        """Build an expression that matches the text of a query; raises Invalid if empty."""
        parsed = parse(query)
        positive = " ".join(term.text for term in parsed.terms)
        # The whole query if possible: its parsed terms do not contain `or`, which is a plain word in a literal text.
        text = (positive if parsed.excluded else query).strip(_BLANK)
        if not positive.strip(_BLANK) or not text:
            raise param_error(
                "query", "There is nothing to search for in this; give at least one word that is not excluded."
            )
        return literally(text[: self.policy.max_pattern_length])


def matches(found: Sequence[FoundRow], needles: Needles) -> tuple[Match, ...]:
    """Build the matches of found rows, in order; snippets highlight the `needles`."""
    if not found:
        return ()
    values = {
        "messages": array(each.id for each in found if isinstance(each.id, int)),
        "others": texts(each.id for each in found if isinstance(each.id, str)),
        "is_shown": any(each.snippet is None for each in found),
        "searched": SEARCHED,
    }
    present = {each.kind for each in found}
    statement = " UNION ALL ".join(f"({text})" for kind, text in _SHOWN.items() if kind in present)
    shown = {row[0]: dict(zip(_COLUMNS, row, strict=True)) for row in rows(statement, values)}
    hidden = [id for id, row in shown.items() if id.isdigit() and not row["active"] and row["covered_by"] is None]
    covering = dict(rows(_COVERING, {"sought": array(hidden)})) if hidden else {}
    for id, summary_id in covering.items():
        shown[id]["covered_by"] = summary_id
    affected = {row["conversation_id"] for row in shown.values() if row.pop("has_quarantines")}
    withheld = withheld_in(affected) if affected else frozenset()
    there = [each for each in found if str(each.id) in shown]
    return tuple(_match(each, needles, withheld, **shown[str(each.id)]) for each in there)


def _match(found: FoundRow, needles: Needles, withheld: Collection[str], *, content: str | None, **shown: Any) -> Match:
    if isinstance(found.id, int):
        shown |= {"id": f"msg_{found.id}", "role": Role(shown["role"])}
    if shown["id"] in withheld:
        shown |= {"author": None, "file_name": None, "quarantined": True}
        return Match(**shown, kind=found.kind, score=found.worth, snippet=Snippet("", 0))
    return Match(**shown, kind=found.kind, score=found.worth, snippet=found.snippet or snippet(content or "", needles))


def whole_texts(found: Sequence[Match]) -> dict[str, str]:
    """Read the whole texts of matching messages and summaries, by id."""
    numbers = [int(match.id.removeprefix("msg_")) for match in found if match.kind is ItemKind.MESSAGE]
    summaries = [match.id for match in found if match.kind is ItemKind.SUMMARY]
    contents = {message.id: message.content for message in messages_of(numbers)}
    return contents | dict(Summary.objects.filter(pk__in=summaries).values_list("pk", "content"))


def fitting(found: Sequence[Match], *, max_tokens: int, count: Callable[[str], int]) -> int:
    """The number of first matches that fit into `max_tokens`; at least one."""
    room = max_tokens
    for place, match in enumerate(found):
        shown = filter(None, (match.snippet.text, match.session_id, match.author, match.file_name))
        room -= FRAME_TOKENS + HIGHLIGHT_TOKENS * len(match.snippet.highlights) + sum(map(count, shown))
        if room < 0:
            return max(1, place)
    return len(found)


def write_position(position: Position, search: str) -> str:
    """Write the signed cursor of a position, bound to a search's fingerprint."""
    key = position.key or ()
    state = (position.interpretation,) if position.at is None else (position.newest, position.size, position.at)
    return write_cursor([*state, *key], of="grep", request=search)


def read_position(cursor: str, search: str) -> Position:
    """Read a cursor; raises Invalid (`bad_cursor`) if it is of another search."""
    values: list[Any] = read_cursor(cursor, of="grep", request=search, refusal=_REFUSAL)
    if len(values) > 2 and isinstance(values[2], datetime):
        newest, size, at, *key = values
        return Position(tuple(key), newest=newest, size=size, at=at)
    interpretation, *key = values
    return Position(tuple(key), interpretation)
