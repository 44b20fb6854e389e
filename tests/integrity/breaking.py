"""A conversation with everything in it, and ways to break it that the database would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection, transaction

from conversations.types import NewMessage, NewPart, PartType, Role, SummaryRecord
from integrity.checker import IntegrityChecker
from integrity.types import IntegrityReport, InvariantResult
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, say
from tests.statements import execute
from tests.summaries import a_summary_of


@dataclass(frozen=True)
class Compacted:
    """A conversation of 40 messages: 2 to 26 below a condensed summary of four leaves, 27 and 28 in a leaf."""

    id: int
    message_ids: dict[int, int]
    leaves: list[SummaryRecord]
    top: SummaryRecord
    late: SummaryRecord

    def message(self, seq: int) -> str:
        return f"msg_{self.message_ids[seq]}"


def a_compacted_conversation() -> Compacted:
    store = a_store()
    conversation_id = a_conversation().conversation_id
    say(
        conversation_id,
        NewMessage(Role.SYSTEM, "You are careful."),
        NewMessage(Role.USER, "NUL \x00 and a lone \ud800 surrogate", author="ada"),
        *(f"message {n}" for n in range(3, 37)),
        a_tool_call("call_1", path="é.py", limit=2.50),
        a_tool_result("call_1", "contents \x00"),
        NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.PATCH, patch_files=("a", "b"), metadata={"z": 1}),)),
        NewMessage(Role.ASSISTANT, "done", metadata={"b": 1, "a": 2}),
    )
    leaves = [a_summary_of(store, conversation_id, seqs=range(first, first + 6)) for first in (2, 8, 14, 20)]
    top = a_summary_of(store, conversation_id, seqs=[26], summaries=leaves)
    late = a_summary_of(store, conversation_id, seqs=[27, 28])
    messages = store.list_messages(conversation_id=conversation_id)
    store.create_message_parts(
        message_id=messages[27].message_id,
        parts=[NewPart(PartType.COMPACTION, is_synthetic=True, is_ignored=True, compaction_auto=True)],
    )
    message_ids = {message.seq: message.message_id for message in messages}
    return Compacted(conversation_id, message_ids, leaves=leaves, top=top, late=late)


def breaking(statement: str, *values: object) -> int:
    """Run a statement as somebody who can get past triggers and foreign keys; how many rows it touched."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL session_replication_role = replica")
        cursor.execute(statement, values)
        touched = cursor.rowcount
        cursor.execute("SET LOCAL session_replication_role = origin")
    return touched


def damaging(statement: str) -> int:
    """The same before rows are written whose triggers wait for the end."""
    touched = breaking(statement)
    execute("SET CONSTRAINTS ALL DEFERRED")
    return touched


@contextmanager
def broken(statement: str, *values: object) -> Iterator[int]:
    """Within, it is broken like that; afterwards it is as before."""
    undone = transaction.savepoint()
    try:
        yield breaking(statement, *values)
    finally:
        transaction.savepoint_rollback(undone)


def forging(table: str, statement: str, *values: object) -> int:
    """The same by somebody who also computes the seals of the table's rows anew."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET CONSTRAINTS ALL IMMEDIATE; ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_are_sealed")
        touched = breaking(statement, *values)
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER {table}_are_sealed")
    return touched


def without(constraint: str, table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {constraint} CASCADE")


@contextmanager
def without_checking(constraint: str, table: str) -> Iterator[None]:
    """Within, rows may break a check; afterwards it stands again, and says nothing of the rows that are there."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [constraint])
        [(definition,)] = cursor.fetchall()
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {constraint}")
        yield
        checked = definition.removesuffix(" NOT VALID")
        cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {constraint} {checked} NOT VALID")


def result(report: IntegrityReport, code: str) -> InvariantResult:
    return next(result for result in report.invariants if result.code == code)


def found(report: IntegrityReport) -> dict[str, list[str]]:
    """The ids of all findings, by invariant."""
    return {result.code: [finding.id for finding in result.findings] for result in report.broken}


def checked() -> dict[str, list[str]]:
    """The ids of all findings of a check of everything, by invariant."""
    return found(IntegrityChecker.from_settings().run())
