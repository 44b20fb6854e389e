"""Embed questions with the current embedder, and cache their vectors.

A question is embedded before the snapshot of a search begins, so no database transaction is open during the call.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from cachetools import LRUCache
from django.db import connection

from compaction.llm.configuration import ModelsPolicy
from compaction.llm.embeddings import EmbedderPolicy, WrongDimension
from compaction.llm.types import ModelFailed, Unreachable
from conversations.errors import Conflict, LcmError, Unavailable
from retrieval.semantic.embedders import question_client
from retrieval.semantic.models import Embedder
from retrieval.semantic.vector_table import VectorTable, as_text

# The maximum number of cached vectors, and of embedded characters of a question. Vectors are cached, because a question
# is repeated for its next page and by other tools.
_MOST_KEPT, _LONGEST = 500, 2000
_kept: LRUCache[tuple[object, ...], str] = LRUCache(_MOST_KEPT)
_keeping = threading.Lock()
_UNTIL_THEN = "Until then, search for words."


class NotReady(Conflict):
    """No embedder is set up, or none has embedded everything yet."""

    code = "semantic_not_ready"


@dataclass(frozen=True)
class Question:
    """The vector of a question, in pgvector's text form, and the table to search."""

    table: VectorTable
    vector: str


def question_of(query: str) -> Question | LcmError:
    """Embed a question; if that fails, return the error instead of raising it."""
    policy, models = EmbedderPolicy.from_settings(), ModelsPolicy.from_settings()
    if not policy.is_configured:
        return NotReady(f"No embedder is set up: {policy.what_is_missing}. {_UNTIL_THEN}")
    embedder = Embedder.current()
    if embedder is None:
        return NotReady(f"Not all messages are embedded yet: `lcm embed status` shows the progress. {_UNTIL_THEN}")
    try:
        return Question(VectorTable.of(embedder), _vector(query[:_LONGEST], embedder, policy, models))
    except WrongDimension as wrong:
        sentence = f"The embedder does not fit its index: {wrong.detail}. Run `lcm embed setup`."
        return Unavailable(sentence, code="wrong_dimension")
    except ModelFailed as failed:
        return Unavailable(f"The embedder gives no vector: {failed}.", code="embedder_unavailable")


def embed_or_none(query: str) -> Question | None:
    """Embed a question for a caller that does not require it; None if that fails."""
    if not query.strip() or Embedder.current() is None:
        return None
    question = question_of(query)
    return None if isinstance(question, LcmError) else question


def _vector(text: str, embedder: Embedder, policy: EmbedderPolicy, models: ModelsPolicy) -> str:
    """Embed a text, or return its cached vector; raises ModelFailed.

    Inside a transaction, no model is called, so only a cached vector can be returned.
    """
    key = (embedder.pk, embedder.created_at, text)
    with _keeping:
        vector = _kept.get(key)
    if vector is None:
        if connection.in_atomic_block:
            raise Unreachable("it is not called within a transaction")
        client = question_client(embedder, policy, models)
        vector = as_text(client.embed([text])[0])
        with _keeping:
            _kept[key] = vector
    return vector
