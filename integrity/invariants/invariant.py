"""Define and run invariants: rules in SQL or Python that find each violation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections

from conversations.sql import load
from integrity.types import Finding, Severity

# For each invariant, a check responds with MOST_FINDINGS findings and stores MOST_KEPT at most; all are counted.
MOST_FINDINGS = 20
MOST_KEPT = 1_000

# A sample is every n-th row by id. It has the same rows each time, so that two checks give the same result.
SAMPLE = 16

# The number of rows fetched at a time. It is small, because a row may hold megabytes.
PORTION = 100


@dataclass(frozen=True)
class Found:
    """The number of violations of an invariant, and the first of them."""

    count: int = 0
    findings: tuple[Finding, ...] = ()

    def __add__(self, other: Found) -> Found:
        return Found(self.count + other.count, (*self.findings, *other.findings)[:MOST_KEPT])


@dataclass(frozen=True)
class Invariant:
    """A rule for rows. `find` takes ids of conversations and returns the violations.

    `is_sampled`: a check that is not thorough reads only a sample of the rows. `of_the_site`: the rule is about rows of
    no conversation, and `find` takes the id of a workspace, or None for the whole site.
    """

    code: str
    severity: Severity
    sentence: str
    find: Callable[..., Found]
    is_sampled: bool = False
    of_the_site: bool = False

    def check(self, conversation_ids: Sequence[int], *, thorough: bool = True) -> Found:
        """Check these conversations."""
        if self.is_sampled:
            return self.find(conversation_ids, every=1 if thorough else SAMPLE)
        return self.find(conversation_ids)


INVARIANTS: list[Invariant] = []


def in_sql(
    file: str, severity: Severity, sentences: Mapping[str, str], *, of_the_site: bool = False, **values: Any
) -> None:
    """Register invariants of one SQL statement each; its name is the code."""
    statements = load(file)
    run = site_violations if of_the_site else violations
    for code, sentence in sentences.items():
        find = partial(run, statements[code], **values)
        INVARIANTS.append(Invariant(code, severity, sentence, find, of_the_site=of_the_site))


def invariant(severity: Severity, **options: bool) -> Callable[[Callable[..., Any]], Callable[..., Found]]:
    """Register a function as an invariant; its name is the invariant's code.

    The function returns a `Found`, or yields findings. The first line of its docstring is shown in reports.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Found]:
        @wraps(function)
        def find(*given: Any, **values: Any) -> Found:
            found = function(*given, **values)
            return found if isinstance(found, Found) else count_findings(found)

        sentence = (function.__doc__ or "").partition("\n")[0]
        INVARIANTS.append(Invariant(function.__name__, severity, sentence, find, **options))
        return find

    return register


def violations(statement: str, conversation_ids: Sequence[int], **values: Any) -> Found:
    """Run a statement that returns violations: conversation id, id and detail.

    The statement uses `%(ids)s` for the conversations. The database counts the rows and returns the first of them.
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


def site_violations(statement: str, workspace_id: int | None, **values: Any) -> Found:
    """Run a statement about rows of a workspace or, with None, of the whole site."""
    return violations(statement, (), workspace_id=workspace_id, **values)


def count_findings(findings: Iterable[Finding]) -> Found:
    """Count generated findings, and keep as many as a report keeps."""
    count = 0
    kept: list[Finding] = []
    for count, finding in enumerate(findings, start=1):
        if count <= MOST_KEPT:
            kept.append(finding)
    return Found(count, tuple(kept))


def stream_rows(statement: str, conversation_ids: Sequence[int], **values: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement from a server-side cursor."""
    for portion in stream_portions(statement, conversation_ids, **values):
        yield from portion


def stream_portions(statement: str, conversation_ids: Sequence[int], **values: Any) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows in portions, for callers that run a further query per portion."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, {"ids": list(conversation_ids), **values})
        while portion := cursor.fetchmany(PORTION):
            yield portion


def stream_overlapped(statement: str, conversation_ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Yield rows as the server finds them, so that server and client work at once.

    The connection accepts no other statement until the last row was read.
    """
    current = connections[DEFAULT_DB_ALIAS]
    current.ensure_connection()
    with current.wrap_database_errors, psycopg.Cursor(cast("psycopg.Connection[Any]", current.connection)) as cursor:
        yield from cursor.stream(cast(Any, statement), {"ids": list(conversation_ids)})
