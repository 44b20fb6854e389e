"""Create and use the table with the vectors of one embedder, and its index.

The table needs pgvector. No migration creates it, but the set-up of an embedder, so LCM also runs without pgvector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import DatabaseError, OperationalError, connection

from conversations.errors import Conflict
from conversations.sql import array, execute, load, rows, texts
from retrieval.semantic.message_passages import MOST_CHARACTERS, Passage
from retrieval.semantic.models import Embedder
from retrieval.semantic.types import IndexState

# Older versions have no iterative index scans, which continue if the filters leave too few rows.
OLDEST_PGVECTOR = (0, 8)
# The maximum number of dimensions that an index on half-precision vectors supports.
WIDEST = 4000
# The memory for building the index, in addition to the server's own. If the vectors do not fit, the build is long.
INDEX_MEMORY = "512MB"

_SQL = load("retrieval/semantic/vectors.sql")
_OF_LCM = load("retrieval/search/relevance.sql")["of_lcm"].format(id="m.message_id", of="m")


class StoredPassage(NamedTuple):
    """A passage of a message with its vector, as stored in the table."""

    message_id: int
    number: int
    place: Passage
    vector: Sequence[float]


class TextOfMessage(NamedTuple):
    """A message; `text` is None if the message must not be embedded."""

    seq: int
    message_id: int
    text: str | None


def pgvector_version() -> str | None:
    """The version of pgvector that is or can be installed; None if there is none."""
    found = rows(_SQL["pgvector"])
    return str(found[0][0]) if found else None


def require_pgvector() -> None:
    """Create the extension if it is missing; raises Conflict if that is impossible."""
    version = pgvector_version()
    if version is None:
        raise Conflict(
            "This PostgreSQL has no pgvector, which stores the embeddings. LCM's own PostgreSQL server has it; on "
            "another server, install the package (such as postgresql-16-pgvector). Until then, search is by words.",
            code="no_pgvector",
        )
    if _numbers(version) < OLDEST_PGVECTOR:
        raise Conflict(
            f"This PostgreSQL has pgvector {version}, but LCM needs 0.8 or newer: update it.", code="no_pgvector"
        )
    _run(_SQL["create_extension"])


def as_text(vector: Sequence[float]) -> str:
    """Serialize a vector in pgvector's text form."""
    return "[" + ",".join(f"{each:.6g}" for each in vector) + "]"


@dataclass(frozen=True)
class VectorTable:
    """The vectors of one embedder."""

    embedder_id: int
    dimension: int

    @classmethod
    def of(cls, embedder: Embedder) -> VectorTable:
        return cls(embedder.pk, embedder.dimension)

    @property
    def name(self) -> str:
        return f"embedding_vectors_{self.embedder_id}"

    def create(self) -> None:
        """Create the table; its vector index is built later, when all vectors exist."""
        _run(self._sql("create_table"))
        _run(self._sql("create_conversation_index"))
        _run(self._sql("create_workspace_index"))

    def drop(self) -> None:
        _run(self._sql("drop_table"))

    def build_index(self) -> None:
        """Build the index without locking the table; drop an interrupted build first."""
        _run(f"SET maintenance_work_mem = '{INDEX_MEMORY}'")
        try:
            self._build_index()
        except Conflict as refusal:
            if not isinstance(refusal.__cause__, OperationalError):
                raise
            # Parallel workers need shared memory, which a container may not have. So build without parallel workers.
            _run("SET max_parallel_maintenance_workers = 0")
            self._build_index()
        finally:
            _run("RESET maintenance_work_mem")
            _run("RESET max_parallel_maintenance_workers")

    def _build_index(self) -> None:
        if self.state()[0] is IndexState.INCOMPLETE:
            _run(self._sql("drop_index"))
        _run(self._sql("create_index"))

    def state(self) -> tuple[IndexState, int]:
        """Return the state of the index, and the size of table and index in bytes."""
        found = rows(self._sql("table_state"))
        if not found or not found[0][0]:
            return IndexState.LOST, 0
        _, is_valid, size = found[0]
        if is_valid is None:
            return IndexState.ABSENT, size
        return IndexState.BUILT if is_valid else IndexState.INCOMPLETE, size

    def next_texts(self, *, conversation_id: int, after: int, most: int) -> list[TextOfMessage]:
        """Read the messages after a seq; those to be embedded have a text."""
        values = {"conversation_id": conversation_id, "after": after, "most": most, "most_characters": MOST_CHARACTERS}
        return [TextOfMessage(*row) for row in rows(self._sql("next_texts"), values)]

    def store(self, passages: Sequence[StoredPassage], *, conversation_id: int) -> int:
        """Store vectors of messages that may still have vectors; return their number.

        Call it inside a transaction: until that ends, none of these texts can be erased, archived or quarantined.
        """
        messages = {"messages": array(sorted({each.message_id for each in passages}))}
        rows(self._sql("hold_messages"), messages)
        still_open = {message_id for (message_id,) in rows(self._sql("open_messages"), messages)}
        kept = [each for each in passages if each.message_id in still_open]
        values = {
            "conversation_id": conversation_id,
            "messages": array(each.message_id for each in kept),
            "passages": array(each.number for each in kept),
            "starts": array(each.place.start for each in kept),
            "ends": array(each.place.end for each in kept),
            "embeddings": texts(as_text(each.vector) for each in kept),
        }
        return execute(self._sql("store_vectors"), values) if kept else 0

    def try_again(self) -> None:
        """Queue messages with refused passages, so that they are embedded again.

        Call it inside a transaction.
        """
        execute(self._sql("try_again"), {"embedder_id": self.embedder_id})

    def _sql(self, name: str) -> str:
        parts: Mapping[str, Any] = {
            "table": self.name,
            "dimension": self.dimension,
            "is_open": _SQL["is_open"].format(of_lcm=_OF_LCM),
        }
        return _SQL[name].format(**parts)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def _run(statement: str) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except DatabaseError as error:
        reason = str(error).splitlines()[0]
        raise Conflict(f"PostgreSQL refuses it: {reason}.", code="semantic_index") from error
