"""Search messages by embeddings, alone or fused with a search by words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import psycopg
from django.db import DatabaseError, transaction

from conversations.errors import LcmError
from conversations.models import Project
from conversations.scope import Scope
from conversations.sql import array, load, rows
from retrieval.search.filters import MESSAGES
from retrieval.search.prepare import Prepared, prepare
from retrieval.search.query.parser import ParsedQuery
from retrieval.search.question_vectors import distinctive, every_nth
from retrieval.search.rank_fusion import FUSED_PAGE_COSTS, fused, weight_of_meaning
from retrieval.search.relevance.hits import Hit
from retrieval.search.relevance.ranking import PAGE_COSTS, PLACE_SQL, conversation_of, speakers_of
from retrieval.search.relevance.relevance_search import RelevanceSearch
from retrieval.search.request import BEGINNING, Found, FoundRow, Position, SearchRequest
from retrieval.search.snippets import Needles, snippet
from retrieval.semantic.questions import NotReady, Question
from retrieval.semantic.vector_table import as_text
from retrieval.types import BranchChoice, GrepScope, Snippet

_SQL = load("retrieval/search/semantic.sql")
# How many of the best are ranked, by words and by embeddings; and how many passages, as long messages have several.
DEPTH, PASSAGES = 200, 400
# Up to so many passages are all compared; among more, the index finds the nearest.
FEW_PASSAGES = 20_000
# The candidates of an index scan (hnsw.ef_search): more of them find more of the nearest, at a higher cost.
BREADTH = 100
# The most passages that an index scan passes for those that meet the filters, and its memory in multiples of work_mem.
MOST_SCANNED, SCAN_MEMORY = 100_000, 8
_PARTIAL = (
    "The index ended its search before enough passages met the filters, so there may be more: name conversations, and "
    "all of their passages are compared."
)
_LOST = "The vectors cannot be read, or pgvector is gone: run `lcm embed setup`."
_BY_WORDS = "Found by words alone. {}"


class NearMessage(NamedTuple):
    """A message, the passage of it that is nearest to the question, and how near.

    `worth` is its score: see `rank_near`.
    """

    message_id: int
    starts_at: int
    ends_at: int
    distance: float
    order_place: int
    place: int
    role: str
    tokens: int
    worth: float = 0.0


class Nearest(NamedTuple):
    """The messages nearest to a question, best first, and whether there may be more."""

    messages: list[NearMessage]
    is_partial: bool = False


@dataclass(frozen=True)
class SemanticSearch:
    """Finds messages by embeddings and, with `with_words`, all that words find.

    Use it within `prepare.bounded`. Where `question` is an error, words alone are searched; without `with_words`, it is
    raised. All pages are of the same list, except for what is embedded meanwhile.
    """

    prepared: Prepared
    question: Question | LcmError
    limit: int
    position: Position = BEGINNING
    with_words: bool = False

    def first(self, queries: Sequence[ParsedQuery]) -> Found | None:
        """Find the first matches after the position. None if there is no lexeme."""
        before = self.position
        here = replace(self, prepared=replace(self.prepared, filters=self.prepared.filters.as_of(before)))
        refused = ""
        try:
            near, is_partial = here.nearest()
        except LcmError as refusal:
            if not self.with_words:
                raise
            near, is_partial, refused = [], False, _BY_WORDS.format(refusal.detail)
        found = here.by_words(queries, near) if self.with_words else None
        if found is None and refused:
            return None
        best = self._in_order(near, found)
        given = before.rows_before(best)
        behind = best[given:]
        then = here.prepared.first_page
        last = found or Found((), lambda place: then)
        return replace(
            last,
            rows=_with_passages(behind[: self.limit], near, last),
            position_of=lambda place: then._replace(key=(given + place + 1, behind[place].mark)),
            note=" ".join(filter(None, (refused, _PARTIAL if is_partial else "", last.note))) or None,
        )

    def ranked(self, queries: Sequence[ParsedQuery]) -> Found | None:
        """Find the best rows, without snippets."""
        try:
            near = self.nearest().messages
        except LcmError:
            return self.by_words(queries)
        found = self.by_words(queries, near)
        best = self._in_order(near, found)[: self.limit]
        return replace(found or Found((), lambda place: BEGINNING), rows=best)

    def by_words(self, queries: Sequence[ParsedQuery], near: Sequence[NearMessage] = ()) -> Found | None:
        """Find the best matches by words, as of the first page, to be fused with `near`."""
        position = self.position._replace(key=None)
        page_costs = FUSED_PAGE_COSTS if near else PAGE_COSTS
        return RelevanceSearch(self.prepared, DEPTH, position, page_costs=page_costs).first(queries)

    def nearest(self) -> Nearest:
        """Rank the messages nearest to the question, each by its nearest passage.

        Raises LcmError if the question has no vector, or the vectors cannot be read.
        """
        if isinstance(self.question, LcmError):
            raise self.question
        if MESSAGES not in self.prepared.filters.tables:
            return Nearest([])
        with _readable():
            found, is_partial = self._nearest(self.question)
        best: dict[int, NearMessage] = {}
        for each in sorted(found, key=lambda each: (each.distance, each.message_id)):
            best.setdefault(each.message_id, each)
        return Nearest(rank_near([*best.values()][:DEPTH]), is_partial)

    def _nearest(self, question: Question) -> tuple[list[NearMessage], bool]:
        filters, table = self.prepared.filters, question.table
        distance = f"embedding <=> %(question)s::halfvec({table.dimension})"
        within = "workspace_id = %(workspace_id)s" if filters.scope.workspace_id is not None else "true"
        named = filters.request.named
        if named:
            within = "conversation_id = ANY(%(named)s::bigint[])"
        values = {**filters.values, "question": question.vector, "named": array(named), "most": PASSAGES}
        count = _SQL["count_passages"].format(table=table.name, within=within)
        [[passages]] = rows(count, {**values, "few": FEW_PASSAGES})
        is_exact = passages <= FEW_PASSAGES
        if is_exact:
            mean = _SQL["mean_of_sample"].format(table=table.name, within=within)
            [[common]] = rows(mean, {**values, "nth": every_nth(passages)})
            if common is not None:
                values["question"] = as_text(distinctive(json.loads(question.vector), json.loads(common)))
            # `+ 0` keeps the planner from using the index for this order.
            distance = f"({distance}) + 0"
        else:
            # IS TRUE keeps the planner from using another index.
            within = f"({within}) IS TRUE"
            settings = {"breadth": BREADTH, "most_scanned": MOST_SCANNED, "memory": SCAN_MEMORY}
            rows(_SQL["settings"], {name: str(value) for name, value in settings.items()})
        statement = _SQL["nearest_passages"].format(
            table=table.name,
            distance=distance,
            within=within,
            order_place=filters.place(MESSAGES),
            one_place=PLACE_SQL,
            has_text=MESSAGES.has_text,
            where=filters.where(MESSAGES, by_words=False),
        )
        found = [NearMessage(*row) for row in rows(statement, values)]
        return found, not is_exact and len(found) < PASSAGES

    def _in_order(self, near: Sequence[NearMessage], found: Found | None) -> list[FoundRow]:
        by_meaning: dict[int | str, FoundRow] = {
            each.message_id: FoundRow(each.message_id, each.order_place, worth=each.worth) for each in near
        }
        if not self.with_words:
            return [*by_meaning.values()]
        by_words = {row.id: row for row in found.rows} if found is not None else {}
        worths = fused([*by_words], [*by_meaning], weight=weight_of_meaning([each.tokens for each in near]))
        known = by_meaning | by_words
        return [known[id]._replace(worth=worth) for id, worth in worths.items()]


def nearest_conversations(question: Question, *, project: Project | None, scope: Scope) -> list[int]:
    """Find the conversations with the messages nearest to a question, nearest first.

    Searches a project or the whole scope; returns none if the vectors cannot be read. Use it within a snapshot.
    """
    of_project = () if project is None else tuple(project.conversations.values_list("pk", flat=True))
    if project is not None and not of_project:
        return []
    request = SearchRequest("", scope=GrepScope.MESSAGES, conversation_ids=of_project, branch=BranchChoice.ALL)
    try:
        near = SemanticSearch(prepare(request, scope), question, DEPTH).nearest().messages
    except NotReady:
        return []
    return [*dict.fromkeys(conversation_of(each.place) for each in near)]


@contextmanager
def _readable() -> Iterator[None]:
    """Raise NotReady if vectors cannot be read, and keep the transaction usable."""
    try:
        with transaction.atomic():
            yield
    except DatabaseError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise
        raise NotReady(_LOST) from error


def rank_near(near: Sequence[NearMessage]) -> list[NearMessage]:
    """Rank messages, nearest first, by how near they are and by the speaker prior.

    The prior is that of the search by words. How near a message is counts from 0, for the farthest of these, to 1, for
    the nearest: the distances themselves differ little, and how much depends on the model.
    """
    if not near:
        return []
    speakers = speakers_of(Hit(str(each.message_id), each.place, (), each.tokens, role=each.role) for each in near)
    nearest, farthest = near[0].distance, near[-1].distance

    def worth(each: NearMessage) -> float:
        nearness = (farthest - each.distance) / ((farthest - nearest) or 1.0)
        prior = speakers.get((conversation_of(each.place), each.role), 1.0)
        return math.exp(nearness) * prior

    return sorted((each._replace(worth=worth(each)) for each in near), key=lambda each: -each.worth)


def _with_passages(best: Sequence[FoundRow], near: Sequence[NearMessage], by_words: Found) -> list[FoundRow]:
    """Add snippets of their passages to rows that are not found by words."""
    rows_by_words = {row.id for row in by_words.rows}
    passages = {each.message_id: each for each in near}
    alone = [passages[row.id] for row in best if isinstance(row.id, int) and row.id not in rows_by_words]
    snippets = _snippets(alone, Needles.of(by_words.lexemes))
    return [row._replace(snippet=snippets.get(row.id)) for row in best]


def _snippets(near: Sequence[NearMessage], needles: Needles) -> dict[int | str, Snippet]:
    """Make snippets of the nearest passages, with the words of the query marked."""
    if not near:
        return {}
    values = {
        "messages": array(each.message_id for each in near),
        "starts": array(each.starts_at for each in near),
        "ends": array(each.ends_at for each in near),
    }
    begins = {each.message_id: each.starts_at for each in near}
    found = rows(_SQL["passage_texts"], values)
    pieces = {message_id: snippet(text, needles) for message_id, text in found}
    return {
        message_id: replace(piece, offset=piece.offset + begins[message_id]) for message_id, piece in pieces.items()
    }
