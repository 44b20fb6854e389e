"""Prepare a search: time limit, snapshot, extent and lexemes.

The lexemes of terms and their document frequencies come from the database. They are cached in the process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

import psycopg
from django.db import OperationalError, connection, transaction

from conversations.errors import LcmError, param_error
from conversations.scope import Scope, not_found
from conversations.sql import array, bigint, is_askable, load, rows, snapshot, texts
from retrieval.search.filters import IN_WORKSPACE, Filters, all_of
from retrieval.search.query.compiled_query import CompiledQuery, LexedTerm, TermKey, compile_query, lexed_term
from retrieval.search.query.parser import ParsedQuery
from retrieval.search.query.word_forms import other_forms
from retrieval.search.request import Position, SearchRequest
from retrieval.types import BranchChoice

_SQL = load("retrieval/search/prepare.sql")

# Sequential scans are off, because an index is always better here, but for a word without statistics the planner may
# not choose it. JIT compilation is off. A prepared statement is planned once for all values.
_SETTINGS = {"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}
# If the requested tools have fewer calls than this, their messages are read first. Otherwise each match is checked.
MOST_CALLS = 300
# The maximum number of cached terms, and the maximum length of a cached term: longer ones rarely repeat.
_MOST_CACHED, _LONGEST_CACHED = 10_000, 100
# PostgreSQL reports an ANALYZE shortly before its statistics are committed, so only older statistics are cached.
_SETTLED_SECONDS = 10


@dataclass(frozen=True)
class Deadline:
    """The deadline of a search: a time of the monotonic clock."""

    at: float
    milliseconds: int

    def remaining_ms(self) -> int:
        """The remaining milliseconds; at least 1, because 0 means no limit to PostgreSQL."""
        return max(1, int((self.at - time.monotonic()) * 1000))

    def impose(self) -> None:
        """Limit each later statement to the remaining time."""
        rows("SELECT set_config('statement_timeout', %s, true)", [str(self.remaining_ms())])


@contextmanager
def bounded(*, milliseconds: int, refusal: Callable[[], LcmError]) -> Iterator[Deadline]:
    """Open a snapshot with a time limit; if the limit is exceeded, raise `refusal()`.

    Statements inside it get generic plans. Use `rows_as_planned` for a statement that must be planned for its values.
    """
    deadline = Deadline(time.monotonic() + milliseconds / 1000, milliseconds)
    settings = {"statement_timeout": str(milliseconds), **_SETTINGS}
    within = _settings_within(settings) if connection.in_atomic_block else nullcontext()
    try:
        with snapshot(settings=settings), within:
            yield deadline
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise refusal() from error
        raise


@contextmanager
def _settings_within(settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings inside the transaction of a caller, until a savepoint ends."""
    with transaction.atomic():
        rows("SELECT " + ", ".join(f"set_config('{name}', %s, true)" for name in settings), [*settings.values()])
        yield
        transaction.set_rollback(True)


class Extent(NamedTuple):
    """The size of the searched data; the fields are the columns of `extent_of_...`."""

    size: int
    cold: int
    newest: int
    named: Sequence[int] | None
    off_path: str | None
    now: datetime
    # The time of the last ANALYZE of the messages, and whether all transactions see its statistics.
    counted_at: datetime | None
    is_committed: bool


@dataclass(frozen=True)
class Prepared:
    """The filters of a search, and the data for compiling its queries.

    `at` is the time of the snapshot.
    """

    filters: Filters
    lexed: Mapping[TermKey, LexedTerm]
    frequencies: Mapping[str, float]
    at: datetime

    @property
    def first_page(self) -> Position:
        """The start of a search, with the values that its later pages need."""
        return Position(newest=self.filters.newest, size=self.filters.size, at=self.filters.at or self.at)

    def compiled(self, parsed: ParsedQuery, *, in_all_forms: bool = False) -> CompiledQuery | None:
        """Compile a query for the full-text index; None if it has no lexeme."""
        frequencies, among = self.frequencies, self.filters.rows
        return compile_query(parsed, self.lexed, frequencies=frequencies, rows=among, in_all_forms=in_all_forms)


def prepare(request: SearchRequest, scope: Scope, queries: Sequence[ParsedQuery] = ()) -> Prepared:
    """Prepare the search for a request and these queries; call it within `bounded`.

    Raises NotFound if a conversation or summary in the request is not in the scope.
    """
    below: tuple[str, ...] = ()
    first, last = 1, None
    if request.under is not None:
        conversation_id, first, last, below = _below(request.under, scope)
        if request.named and conversation_id not in request.named:
            raise param_error("under", "This summary is of another conversation than those to search.")
        request = replace(request, conversation_id=conversation_id, conversation_ids=())
    extent = _extent(request, scope)
    low, high = 0, extent.newest
    if request.conversation_id is not None:
        high = min(each for each in (extent.newest, last, request.to_seq) if each is not None)
        low = min(high, max(first, request.from_seq or 1) - 1)
    for each in sorted(set(request.conversation_ids).difference(extent.named or ())):
        raise not_found("conversation", each)
    filters = Filters(
        scope,
        request,
        extent.size,
        low,
        high,
        extent.newest,
        below,
        cold=extent.cold,
        off_path=extent.off_path if request.branch is BranchChoice.ACTIVE else None,
        of_tools=_messages_of_rare_tools(request) if request.tool_names else None,
    )
    return Prepared(filters, lexed_terms(queries), _word_frequencies(extent) if queries else {}, extent.now)


def _extent(request: SearchRequest, scope: Scope) -> Extent:
    conversation_id = request.conversation_id
    if conversation_id is not None and not is_askable(conversation_id):
        raise not_found("conversation", conversation_id)
    values = {
        "workspace_id": scope.workspace_id,
        "conversation_id": bigint(conversation_id) if conversation_id is not None else None,
        "conversation_ids": array(filter(is_askable, request.conversation_ids)),
        "named": bool(request.conversation_ids),
    }
    conditions = {
        "workspace_id = %(workspace_id)s": scope.workspace_id is not None,
        "conversation_id = %(conversation_id)s": conversation_id is not None,
        "conversation_id = ANY(%(conversation_ids)s::bigint[])": bool(request.conversation_ids),
    }
    statement = _SQL["extent_of_several" if conversation_id is None else "extent_of_one"]
    found = rows(statement.format(statistics=_SQL["statistics"], where=all_of(conditions)), values)
    if not found:
        raise not_found("conversation", conversation_id)
    return Extent(*found[0])


def _below(summary_id: str, scope: Scope) -> tuple[int, int, int, tuple[str, ...]]:
    """The conversation and range of a summary, and all summaries below it."""
    if not summary_id.isprintable():
        raise not_found("summary", summary_id)
    owned = IN_WORKSPACE if scope.workspace_id is not None else "true"
    values = {"under": summary_id, "workspace_id": scope.workspace_id}
    found = rows(_SQL["below_summary"].format(owned=owned), values)
    if not found:
        raise not_found("summary", summary_id)
    [(conversation_id, first, last, below)] = found
    return conversation_id, first, last, tuple(below)


def _messages_of_rare_tools(request: SearchRequest) -> tuple[int, ...] | None:
    """The ids of all messages of the requested tools; None if these have many calls.

    The messages may be of other conversations than the requested one.
    """
    values = {"tool_names": list(request.tool_names), "conversation_id": request.conversation_id, "most": MOST_CALLS}
    [(calls, found)] = rows(_SQL["messages_of_rare_tools"], values)
    return tuple(found) if calls < MOST_CALLS else None


_lexed: dict[TermKey, LexedTerm] = {}


def lexed_terms(queries: Iterable[ParsedQuery]) -> Mapping[TermKey, LexedTerm]:
    """Look up the lexemes of the terms in queries, in the cache or the database."""
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


# The frequencies of the last ANALYZE; the key is the time of that ANALYZE.
_counted: dict[datetime, Mapping[str, float]] = {}


def _word_frequencies(extent: Extent) -> Mapping[str, float]:
    """The share of messages with each of the most common lexemes, from pg_stats."""
    counted_at = extent.counted_at
    if counted_at in _counted:
        return _counted[counted_at]
    found = rows(_SQL["word_frequencies"])
    frequencies = dict(zip(*json.loads(found[0][0]), strict=False)) if found else {}
    if counted_at is not None and extent.is_committed and (extent.now - counted_at).total_seconds() > _SETTLED_SECONDS:
        _counted.clear()
        _counted[counted_at] = frequencies
    return frequencies
