"""Search by meaning among many passages: size, time to build the index, time of a search, and what it misses.

Vectors are made without a model: directions around so many themes, ten passages of each message, a thousand messages a
conversation. A search of all is by the index, one of a conversation compares all of its passages. What the index misses
of the nearest ten is counted beside a comparison of all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from django.db import connection

from conversations.errors import Unavailable
from conversations.models import Message
from conversations.sql import load, rows
from conversations.types import NewMessage, Role
from retrieval.search.prepare import bounded, prepare
from retrieval.search.request import SearchRequest
from retrieval.search.semantic_search import SemanticSearch
from retrieval.semantic.models import Embedder
from retrieval.semantic.questions import Question
from retrieval.semantic.types import EmbedderState
from retrieval.semantic.vector_table import VectorTable, require_pgvector
from retrieval.types import GrepMode
from tests.benchmarks.ingest import a_store
from tests.benchmarks.measure import Laps
from tests.benchmarks.report import Line, at_most

DIMENSION, THEMES, QUESTIONS = 384, 2000, 30
OF_A_MESSAGE, OF_A_CONVERSATION = 10, 1000
# Messages whose vectors are made at once.
AT_ONCE = 2000
SLOWEST = at_most(25, " ms")

_SQL = load("tests/vectors.sql")


def searched(passages: int) -> list[Line]:
    """Make so many vectors, and search them."""
    require_pgvector()
    conversations = _messages(max(1, passages // OF_A_MESSAGE))
    embedder = Embedder.objects.create(url="http://nowhere", model="none", question_model="none", dimension=DIMENSION)
    table = VectorTable.of(embedder)
    table.drop()
    table.create()
    stored = _timed(lambda: _store(table))
    built = _timed(table.build_index)
    Embedder.objects.filter(pk=embedder.pk).update(state=EmbedderState.CURRENT)
    with connection.cursor() as cursor:
        cursor.execute(_SQL["count_passages"], {"embedder_id": embedder.pk})
        cursor.execute(f"ANALYZE {table.name}")
    questions = [Question(table, vector) for (vector,) in rows(_SQL["questions"], {"questions": QUESTIONS})]
    of_all, found = _searches(questions, None)
    of_one, _ = _searches(questions, conversations[0])
    missed = _missed(questions, found)
    size = table.state()[1] / 1024**2
    what = f"{passages:,} passages"
    return [
        Line("23", f"{what}: vectors stored, with those made", stored, "s"),
        Line("23", f"{what}: index built", built, "s"),
        Line("23", f"{what}: size", size, "MB"),
        Line("23", f"{what}: nearest of all, p50", 1000 * of_all.cost, "ms", goal=SLOWEST),
        Line("23", f"{what}: nearest of all, p95", 1000 * of_all.cost_at(0.95), "ms"),
        Line("23", f"{what}: nearest of one conversation, p50", 1000 * of_one.cost, "ms", goal=SLOWEST),
        Line("23", f"{what}: nearest of one conversation, p95", 1000 * of_one.cost_at(0.95), "ms"),
        Line("23", f"{what}: share of the nearest ten that the index misses", missed),
    ]


def _messages(count: int) -> list[int]:
    store, conversations = a_store(), []
    for start in range(0, count, OF_A_CONVERSATION):
        conversation_id = store.open_conversation(session_id=f"vectors {start}").conversation_id
        conversations.append(conversation_id)
        texts = [f"Passage of message {n}" for n in range(start, min(count, start + OF_A_CONVERSATION))]
        store.append_messages(conversation_id=conversation_id, messages=[NewMessage(Role.USER, text) for text in texts])
    return conversations


def _store(table: VectorTable) -> None:
    statement = _SQL["make_vectors"].format(table=table.name, dimension=DIMENSION)
    ids = list(Message.objects.filter(conversation__session_id__startswith="vectors ").values_list("pk", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(_SQL["make_themes"], {"themes": THEMES, "dimension": DIMENSION})
        cursor.execute("CREATE INDEX ON themes (theme)")
        for first in range(min(ids), max(ids) + 1, AT_ONCE):
            last = min(max(ids), first + AT_ONCE - 1)
            cursor.execute(statement, {"themes": THEMES, "first": first, "last": last})


def _searches(questions: Sequence[Question], conversation_id: int | None) -> tuple[Laps, list[list[int]]]:
    laps, found = Laps(), []
    for question in [questions[0], *questions]:
        request = SearchRequest("a question", GrepMode.SEMANTIC, conversation_id=conversation_id)
        with bounded(milliseconds=60_000, refusal=lambda: Unavailable("too slow")):
            search = SemanticSearch(prepare(request, a_store().scope), question, 20)
            with laps.lap():
                near = search.nearest().messages
        found.append([each.message_id for each in near[:10]])
    # The first has read pages that later ones find in memory.
    return Laps(laps.seconds[1:], laps.done[1:]), found[1:]


def _missed(questions: Sequence[Question], found: Sequence[Sequence[int]]) -> float:
    """The share of the nearest ten that only a comparison of all finds."""
    missed = 0
    for question, by_index in zip(questions, found, strict=True):
        nearest = rows(
            f"SELECT message_id FROM {question.table.name} GROUP BY message_id"
            f" ORDER BY min((embedding <=> %s::halfvec({DIMENSION})) + 0), message_id LIMIT 10",
            [question.vector],
        )
        missed += len({message_id for (message_id,) in nearest}.difference(by_index))
    return missed / (10 * len(questions))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
