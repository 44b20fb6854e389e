"""Build, drop and check the optional trigram index for regular expressions.

With this index, a search for an expression with a rare word is an index lookup. But the index makes every append more
expensive. So it exists only if the site administrator builds it (`lcm trigram-index build`) and enables it with
LCM_TRIGRAM_INDEX. It needs PostgreSQL's extension pg_trgm, which LCM's embedded server does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.db import DatabaseError, connection

from conversations.errors import Conflict
from conversations.sql import rows
from retrieval.policy import RetrievalPolicy

INDEX = "messages_content_trgm_idx"

_STATE = """
    SELECT i.indisvalid, pg_relation_size(i.indexrelid)
    FROM pg_index i WHERE i.indexrelid = to_regclass(%s)
"""
_AVAILABLE = "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"
_BUILD = f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {INDEX} ON messages USING gin (content gin_trgm_ops)"
_DROP = f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}"


class State(StrEnum):
    ABSENT = "absent"
    # The build of the index was interrupted, or is still in progress.
    INCOMPLETE = "incomplete"
    BUILT = "built"


@dataclass(frozen=True)
class TrigramIndex:
    """The state of the index: whether it is available, built, and enabled."""

    state: State
    size_bytes: int
    # Whether the server has pg_trgm (`available`), and whether LCM_TRIGRAM_INDEX allows searches to use the index.
    available: bool
    enabled: bool


def status(policy: RetrievalPolicy) -> TrigramIndex:
    """Report the state of the index."""
    state, size = _state()
    return TrigramIndex(state, size, available=bool(rows(_AVAILABLE)), enabled=policy.trigram_index)


def is_used(policy: RetrievalPolicy) -> bool:
    """Whether searches by regular expressions use the index."""
    return policy.trigram_index and _state()[0] is State.BUILT


def build(policy: RetrievalPolicy) -> TrigramIndex:
    """Build the index concurrently; raises Conflict if the server has no pg_trgm."""
    if not rows(_AVAILABLE):
        raise Conflict(
            "This PostgreSQL has no pg_trgm, which the trigram index needs. LCM's own PostgreSQL server has no contrib "
            "modules; use a server that has them (LCM_DATABASE_URL). Without the index, regular expressions work, but "
            "more slowly.",
            code="no_pg_trgm",
        )
    if _state()[0] is State.INCOMPLETE:
        _run(_DROP)
    _run("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    _run(_BUILD)
    return status(policy)


def drop(policy: RetrievalPolicy) -> TrigramIndex:
    """Drop the index; searches work without it."""
    _run(_DROP)
    return status(policy)


def _state() -> tuple[State, int]:
    found = rows(_STATE, [INDEX])
    if not found:
        return State.ABSENT, 0
    is_valid, size = found[0]
    return State.BUILT if is_valid else State.INCOMPLETE, size


def _run(statement: str) -> None:
    if connection.in_atomic_block:
        raise Conflict("The index cannot be built or dropped inside a transaction.")
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except DatabaseError as error:
        reason = str(error).splitlines()[0]
        raise Conflict(f"PostgreSQL refuses it: {reason}.", code="trigram_index") from error
