"""What an invariant is: a function that looks for every place where it does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from integrity.types import Finding, Severity

# A report names so many places for each invariant; all of them are counted.
MOST_FINDINGS = 20


@dataclass(frozen=True)
class Found:
    """How often an invariant is broken, and the first places."""

    count: int = 0
    findings: tuple[Finding, ...] = ()

    def __add__(self, other: Found) -> Found:
        return Found(self.count + other.count, (*self.findings, *other.findings)[:MOST_FINDINGS])


Find = Callable[[Sequence[int]], Found]


@dataclass(frozen=True)
class Invariant:
    """A promise that is checked again from the rows: `find` looks through the conversations with these ids."""

    code: str
    severity: Severity
    sentence: str
    find: Find


INVARIANTS: list[Invariant] = []


def invariant(severity: Severity) -> Callable[[Find], Find]:
    """Makes a function an invariant: its name is the code, the first line of its docstring says what holds."""

    def register(find: Find) -> Find:
        sentence = (find.__doc__ or "").partition("\n")[0]
        INVARIANTS.append(Invariant(code=find.__name__, severity=severity, sentence=sentence, find=find))
        return find

    return register


def violations(statement: str, conversation_ids: Sequence[int]) -> Found:
    """The rows of a statement: each a conversation's id, the id of what is wrong, and what is wrong with it.

    The statement says `%(ids)s` for the conversations. The database counts the rows, and sends the first of them.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT *, count(*) OVER () FROM ({statement}) AS violation(conversation_id, id, detail)
            ORDER BY conversation_id, id LIMIT {MOST_FINDINGS}
            """,
            {"ids": list(conversation_ids)},
        )
        rows = cursor.fetchall()
    return Found(
        count=rows[0][3] if rows else 0,
        findings=tuple(Finding(conversation_id, id, detail) for conversation_id, id, detail, _ in rows),
    )


def counted(findings: Iterable[Finding]) -> Found:
    """The same of findings that come one by one; no more of them are kept than are told."""
    count = 0
    kept: list[Finding] = []
    for finding in findings:
        count += 1
        if len(kept) < MOST_FINDINGS:
            kept.append(finding)
    return Found(count, tuple(kept))
