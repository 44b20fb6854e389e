"""What an invariant is: a function that looks for every place where it does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections

from integrity.types import Finding, Severity

# A check answers with so many places for each invariant, and its report keeps so many; all of them are counted.
MOST_FINDINGS = 20
MOST_KEPT = 1_000

# Where everything need not be looked at, every so many-th is: the same ones each time, so that two checks agree.
SAMPLE = 16

# Rows that may hold megabytes each come in small portions.
PORTION = 100


@dataclass(frozen=True)
class Found:
    """How often an invariant is broken, and the first places."""

    count: int = 0
    findings: tuple[Finding, ...] = ()

    def __add__(self, other: Found) -> Found:
        return Found(self.count + other.count, (*self.findings, *other.findings)[:MOST_KEPT])


@dataclass(frozen=True)
class Invariant:
    """A promise that is checked again from the rows: `find` looks through the conversations with these ids.

    One that `is_sampled` looks at a sample unless it is told to be thorough. One `of_the_site` is about what belongs to
    no conversation: it looks through one workspace, or, with None, through everything.
    """

    code: str
    severity: Severity
    sentence: str
    find: Callable[..., Found]
    reads_texts: bool = False
    is_sampled: bool = False
    of_the_site: bool = False

    def look(self, conversation_ids: Sequence[int], *, thorough: bool = True) -> Found:
        """What is found in these conversations."""
        if self.is_sampled:
            return self.find(conversation_ids, every=1 if thorough else SAMPLE)
        return self.find(conversation_ids)


INVARIANTS: list[Invariant] = []


def invariant(
    severity: Severity, *, reads_texts: bool = False, is_sampled: bool = False, of_the_site: bool = False
) -> Callable[[Callable[..., Found]], Callable[..., Found]]:
    """Makes a function an invariant: its name is the code, the first line of its docstring says what holds."""

    def register(find: Callable[..., Found]) -> Callable[..., Found]:
        sentence = (find.__doc__ or "").partition("\n")[0]
        INVARIANTS.append(
            Invariant(
                code=find.__name__,
                severity=severity,
                sentence=sentence,
                find=find,
                reads_texts=reads_texts,
                is_sampled=is_sampled,
                of_the_site=of_the_site,
            )
        )
        return find

    return register


def violations(statement: str, conversation_ids: Sequence[int], **values: Any) -> Found:
    """The rows of a statement: each a conversation's id, the id of what is wrong, and what is wrong with it.

    The statement says `%(ids)s` for the conversations. The database counts the rows, and sends the first of them.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT *, count(*) OVER () FROM ({statement}) AS violation(conversation_id, id, detail)
            ORDER BY conversation_id, id LIMIT {MOST_KEPT}
            """,
            {"ids": list(conversation_ids), **values},
        )
        rows = cursor.fetchall()
    return Found(
        count=rows[0][3] if rows else 0,
        findings=tuple(Finding(conversation_id, id, detail) for conversation_id, id, detail, _ in rows),
    )


def counted(findings: Iterable[Finding]) -> Found:
    """The same of findings that come one by one; no more of them are kept than a report keeps."""
    count = 0
    kept: list[Finding] = []
    for finding in findings:
        count += 1
        if len(kept) < MOST_KEPT:
            kept.append(finding)
    return Found(count, tuple(kept))


def streamed(statement: str, conversation_ids: Sequence[int], **values: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement, a portion at a time, from a cursor on the server's side."""
    for portion in streamed_in_portions(statement, conversation_ids, **values):
        yield from portion


def streamed_in_portions(
    statement: str, conversation_ids: Sequence[int], **values: Any
) -> Iterator[list[tuple[Any, ...]]]:
    """The same rows in portions, for reading more of each."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, {"ids": list(conversation_ids), **values})
        while portion := cursor.fetchmany(PORTION):
            yield portion


def flowing(statement: str, conversation_ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement as the server finds them, which it goes on with while those before are looked at.

    For long work on each row: it takes as long as the slower of the two, and not as long as both. Until the last row
    was taken, nothing else can be asked.
    """
    current = connections[DEFAULT_DB_ALIAS]
    current.ensure_connection()
    with current.wrap_database_errors, psycopg.Cursor(cast("psycopg.Connection[Any]", current.connection)) as cursor:
        yield from cursor.stream(cast(Any, statement), {"ids": list(conversation_ids)})
