"""Prepare a search: read where it looks and how much is there, then the lexemes of its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from conversations.scope import Scope, unseen
from conversations.sql import array, bigint, load, rows
from retrieval.search.criteria import Criteria, wrong
from retrieval.search.filters import IN_WORKSPACE, Filters, messages_of_rare_tools
from retrieval.search.query.compiled_query import CompiledQuery, compile_query
from retrieval.search.query.lexemes import LexedTerm, TermKey
from retrieval.search.query.parser import ParsedQuery
from retrieval.search.query.word_index import lexed_terms, word_frequencies
from retrieval.search.searchables import FILES, SUMMARIES

_SQL = load("retrieval/search_prepare.sql")


@dataclass(frozen=True)
class Prepared:
    """Where a search looks, and what it takes to compile its queries. `at`: the moment of the search."""

    filters: Filters
    lexed: Mapping[TermKey, LexedTerm]
    frequencies: Mapping[str, float]
    at: datetime

    def compiled(
        self, parsed: ParsedQuery, filters: Filters | None = None, *, in_all_forms: bool = False
    ) -> CompiledQuery | None:
        """The query as the word index can answer it; None if it has no lexeme. `filters`: others than these."""
        among = (filters or self.filters).rows
        return compile_query(parsed, self.lexed, frequencies=self.frequencies, rows=among, in_all_forms=in_all_forms)


def prepare(criteria: Criteria, scope: Scope, queries: Sequence[ParsedQuery] = ()) -> Prepared:
    """The search of these criteria for one of these queries; call it within `limits.bounded`.

    NotFound for a conversation or a summary that the scope does not have.
    """
    below: tuple[str, ...] = ()
    first = last = None
    if criteria.under is not None:
        conversation_id, first, last, below = _below(criteria.under, scope)
        criteria = _within(criteria, conversation_id)
    (size, cold, newest, named, has_summaries, has_files, at, counted_at, is_committed) = _extent(criteria, scope)
    if criteria.conversation_id is None:
        for each in sorted(set(criteria.conversation_ids).difference(named or ())):
            raise unseen("conversation", each)
        filters = Filters(scope, criteria, size, 0, newest, newest=newest, cold=cold)
    else:
        low = max(first or 1, criteria.from_seq or 1) - 1
        high = min(each for each in (newest, last, criteria.to_seq) if each is not None)
        missing = {table.kind for table, there in ((SUMMARIES, has_summaries), (FILES, has_files)) if not there}
        filters = Filters(
            scope, criteria, size, min(low, high), high, newest, below, cold=cold, missing=frozenset(missing)
        )
    if criteria.tool_names:
        of_tools = messages_of_rare_tools(criteria.tool_names, criteria.conversation_id)
        filters = replace(filters, of_tools=of_tools)
    if not queries:
        return Prepared(filters, {}, {}, at)
    frequencies = word_frequencies(counted_at, now=at, is_committed=is_committed)
    return Prepared(filters, lexed_terms(queries), frequencies, at)


def _extent(criteria: Criteria, scope: Scope) -> tuple[Any, ...]:
    conversation_id = criteria.conversation_id
    values = {
        "workspace_id": scope.workspace_id,
        "conversation_id": bigint(int(conversation_id)) if conversation_id is not None else None,
        "conversation_ids": array(filter(_is_possible, criteria.conversation_ids)),
        "named": bool(criteria.conversation_ids),
    }
    where = ["workspace_id = %(workspace_id)s"] if scope.workspace_id is not None else []
    if conversation_id is not None:
        if not _is_possible(conversation_id):
            raise unseen("conversation", conversation_id)
        name = "extent_of_one"
        where.append("conversation_id = %(conversation_id)s")
    else:
        name = "extent_of_several"
        where += ["conversation_id = ANY(%(conversation_ids)s::bigint[])"] if criteria.conversation_ids else []
    statement = _SQL[name].format(statistics=_SQL["statistics"], where=" AND ".join(where) or "true")
    found = rows(statement, values)
    if not found:
        raise unseen("conversation", conversation_id)
    return found[0]


def _below(summary_id: str, scope: Scope) -> tuple[int, int, int, tuple[str, ...]]:
    """The conversation of a summary, its range, and the summaries that it was made from, all the way down."""
    if not summary_id.isprintable():
        raise unseen("summary", summary_id)
    owned = IN_WORKSPACE if scope.workspace_id is not None else "true"
    values = {"under": summary_id, "workspace_id": scope.workspace_id}
    found = rows(_SQL["below_summary"].format(owned=owned), values)
    if not found:
        raise unseen("summary", summary_id)
    [(conversation_id, first, last, below)] = found
    return conversation_id, first, last, tuple(below)


def _is_possible(conversation_id: int) -> bool:
    # A service may be given a text instead of a number.
    return -(2**63) <= int(conversation_id) < 2**63


def _within(criteria: Criteria, conversation_id: int) -> Criteria:
    """The same in the conversation of the summary that was named, which is the only one it can be about."""
    if criteria.named and conversation_id not in criteria.named:
        raise wrong("under", "This summary is of another conversation than those that are to be searched.")
    return replace(criteria, conversation_id=conversation_id, conversation_ids=())
