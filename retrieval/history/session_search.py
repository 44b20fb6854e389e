"""Search session, arc and epoch summaries by their words, best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from compaction.history.history_sources import withheld_sessions
from compaction.history.models import SessionSummary
from compaction.history.types import HistoryKind
from conversations.content.lossless_values import storable
from conversations.errors import param_error
from conversations.models import Project
from conversations.scope import Scope
from conversations.sql import load, rows, snapshot, texts
from retrieval.history.timelines import project_named
from retrieval.history.types import SessionMatch, SessionMatches
from retrieval.reader import Reader
from retrieval.search.filters import all_of
from retrieval.search.prepare import lexed_terms
from retrieval.search.query.compiled_query import CompiledQuery, LexedTerm, compile_query, lexeme_query
from retrieval.search.query.parser import parse
from retrieval.search.relevance.ranking import A_HANDFUL
from retrieval.search.snippets import Needles, snippet

# The maximum number of matches on all pages together.
MOST_RANKED = 1000

_SQL = load("retrieval/history/search.sql")
_KINDS = tuple(HistoryKind)


class Found(NamedTuple):
    """A matching summary; the fields are the columns of the statement `best`."""

    summary_id: str
    depth: int
    project: str | None
    conversation_id: int | None
    session_id: str | None
    earliest_at: Any
    latest_at: Any
    token_count: int
    worth: float
    is_complete: bool
    complete: int


def words_of(query: str) -> CompiledQuery | None:
    """Parse a query for the index; None if none of its words is indexed."""
    parsed = parse(query)
    return compile_query(parsed, lexed_terms([parsed]), frequencies={}, rows=0)


def best(
    query: CompiledQuery,
    *,
    scope: Scope,
    project: Project | None,
    kind: HistoryKind | None = None,
    offset: int = 0,
    limit: int,
) -> list[Found]:
    """Find the best matches of a query."""
    terms = (" | ".join(_as_query(term, query) for term in clause) for clause in query.clauses)
    conditions = {
        "s.workspace_id = %(workspace_id)s": scope.workspace_id is not None,
        "p.project_id = %(project_id)s": project is not None,
        "s.depth = %(depth)s": kind is not None,
    }
    values = {
        "workspace_id": scope.workspace_id,
        "project_id": None if project is None else project.project_id,
        "depth": None if kind is None else kind.depth,
        "terms": texts(dict.fromkeys(terms)),
        "hidden": texts(withheld_sessions(scope.workspace_id)),
        "excluded": " | ".join(f"({each})" for each in query.excluded),
        "offset": offset,
        "limit": limit,
    }
    statement = _SQL["best"].format(
        conditions=all_of(conditions),
        excluding="NOT content_tsv @@ %(excluded)s::tsquery" if query.excluded else "true",
    )
    return [Found(*row) for row in rows(statement, values)]


@dataclass(frozen=True)
class SessionSearch(Reader):
    """Searches session, arc and epoch summaries."""

    def grep_sessions(
        self,
        *,
        query: str,
        project: str | None = None,
        kind: HistoryKind | str | None = None,
        offset: int = 0,
        limit: int = 20,
    ) -> SessionMatches:
        """Search the summaries of sessions, arcs and epochs, best match first.

        Superseded summaries are not searched. The query is words, "phrases", `or` and -exclusions, as for grep. If too
        few summaries contain every word, summaries with any of the words are returned, and `relaxed` is true. Raises
        Invalid `invalid_params` for a query without a word; NotFound for an unknown project.
        """
        query = storable(query)
        owner = None if project is None else project_named(project, self.scope)
        only = None if kind is None else HistoryKind(kind)
        if len(query) > self.policy.max_query_length:
            raise param_error("query", f"A query may have {self.policy.max_query_length:,} characters at most.")
        with snapshot(settings=self.policy.search_settings):
            words = words_of(query)
            if words is None:
                raise param_error(
                    "query", "There is no word to search for in this; give at least one that is not excluded."
                )
            found = best(words, scope=self.scope, project=owner, kind=only, offset=offset, limit=limit + 1)
            is_relaxed = not found or found[0].complete < A_HANDFUL
            if not is_relaxed:
                found = [each for each in found if each.is_complete]
            contents = dict(
                SessionSummary.objects.filter(pk__in=[each.summary_id for each in found]).values_list("pk", "content")
            )
        needles = Needles.of(words.rarities)
        following = offset + limit
        return SessionMatches(
            query=query,
            project=None if owner is None else owner.name,
            matches=tuple(_match(each, contents[each.summary_id], needles) for each in found[:limit]),
            relaxed=is_relaxed and any(not each.is_complete for each in found),
            next_offset=following if len(found) > limit and following < MOST_RANKED else None,
        )


def _as_query(term: LexedTerm, query: CompiledQuery) -> str:
    """The tsquery of a term; in a sentence, it also has the word's other forms."""
    forms = map(lexeme_query, term.forms) if query.is_sentence else ()
    return " | ".join((f"({term.as_query})", *forms))


def _match(found: Found, content: str, needles: Needles) -> SessionMatch:
    return SessionMatch(
        id=found.summary_id,
        kind=_KINDS[found.depth],
        project=found.project,
        conversation_id=found.conversation_id,
        session_id=found.session_id,
        earliest_at=found.earliest_at,
        latest_at=found.latest_at,
        token_count=found.token_count,
        score=found.worth,
        snippet=snippet(content, needles),
    )
