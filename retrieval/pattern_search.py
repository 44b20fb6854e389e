"""Finds what a regular expression matches, newest first, in batches that grow: near things are found at once, and a
search through everything holds no more than its matches in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import DataError, connection, transaction

from conversations.errors import Invalid
from conversations.models import Conversation
from conversations.scope import Scope
from retrieval.limits import Deadline
from retrieval.lookup import NOT_SUPERSEDED
from retrieval.patterns import Pattern, refused
from retrieval.snippets import WIDTH, around
from retrieval.types import Snippet

FIRST_BATCH, LARGEST_BATCH = 250, 64_000

# A match's place is worked out only for what is given back; the offset keeps the planner from doing it before.
_MESSAGES = """
    SELECT message_id, conversation_id, seq, created_at, from_place, to_place,
           substr(content, greatest(1, from_place - {width}), {width} * 3), greatest(0, from_place - {width} - 1)
    FROM (
        SELECT message_id, conversation_id, seq, created_at, content, regexp_instr(content, %(pattern)s) AS from_place,
               regexp_instr(content, %(pattern)s, 1, 1, 1) AS to_place
        FROM (
            SELECT message_id, conversation_id, seq, created_at, content FROM messages
            WHERE {where} AND {place} > %(after)s AND {place} <= %(upto)s AND {matches}
            ORDER BY {place} DESC LIMIT %(limit)s
        ) AS newest
        OFFSET 0
    ) AS found
    ORDER BY {place} DESC
"""
_SUMMARIES = """
    SELECT summary_id, conversation_id, first_seq, latest_at, from_place, to_place,
           substr(content, greatest(1, from_place - {width}), {width} * 3), greatest(0, from_place - {width} - 1)
    FROM (
        SELECT *, regexp_instr(content, %(pattern)s) AS from_place,
               regexp_instr(content, %(pattern)s, 1, 1, 1) AS to_place
        FROM (
            SELECT summary_id, conversation_id, first_seq, last_seq, latest_at, content FROM summaries
            WHERE {where} AND {place} >= %(since)s AND {matches} AND {current}
            ORDER BY {place} DESC, depth DESC LIMIT %(limit)s
        ) AS newest
        OFFSET 0
    ) AS found
"""
_IN_WORKSPACE = "conversation_id IN (SELECT conversation_id FROM conversations WHERE workspace_id = %(workspace_id)s)"


@dataclass(frozen=True)
class Spot:
    """A row that matches, and the piece of it around the first match."""

    id: int | str
    conversation_id: int
    seq: int
    created_at: datetime
    snippet: Snippet


@dataclass(frozen=True)
class PatternSearch:
    """Regular expressions over one conversation, or all that the scope may see. Call it within `limits.bounded`."""

    scope: Scope

    def messages(self, pattern: Pattern, *, conversation_id: int | None, limit: int, deadline: Deadline) -> list[Spot]:
        """The newest messages that match; Invalid if the pattern is not a valid one."""
        where, values = self._where(conversation_id)
        place = "seq" if conversation_id is not None else "message_id"
        statement = _MESSAGES.format(width=WIDTH, where=where, place=place, matches=_matches(pattern))
        found: list[Spot] = []
        for after, upto in _batches(self._newest(conversation_id)):
            deadline.impose()
            found += _spots(statement, pattern, {**values, "after": after, "upto": upto, "limit": limit - len(found)})
            if len(found) >= limit:
                break
        return found

    def summaries(
        self, pattern: Pattern, *, conversation_id: int | None, limit: int, since: Spot | None = None
    ) -> list[Spot]:
        """The summaries of the newest history that match, none that ends before `since`; Invalid as for messages."""
        where, values = self._where(conversation_id)
        place = "last_seq" if conversation_id is not None else "latest_at"
        statement = _SUMMARIES.format(
            width=WIDTH, where=where, place=place, matches=_matches(pattern), current=NOT_SUPERSEDED
        )
        if conversation_id is not None:
            values["since"] = since.seq if since is not None else 0
        else:
            values["since"] = since.created_at if since is not None else "-infinity"
        return _spots(statement, pattern, {**values, "limit": limit})

    def _newest(self, conversation_id: int | None) -> int:
        """The place of the newest message that is searched; NotFound if the scope has no such conversation."""
        if conversation_id is not None:
            return self.scope.conversation(conversation_id).next_seq - 1
        if not self.scope.narrow(Conversation.objects.all()).exists():
            return 0
        with connection.cursor() as cursor:
            cursor.execute("SELECT coalesce(max(message_id), 0) FROM messages")
            return int(cursor.fetchone()[0])

    def _where(self, conversation_id: int | None) -> tuple[str, dict[str, Any]]:
        if conversation_id is not None:
            return "conversation_id = %(conversation_id)s", {"conversation_id": conversation_id}
        if self.scope.workspace_id is None:
            return "true", {}
        return _IN_WORKSPACE, {"workspace_id": self.scope.workspace_id}


def _batches(newest: int) -> Iterator[tuple[int, int]]:
    """Ranges (after, up to) from the newest place down to the first."""
    size, upto = FIRST_BATCH, newest
    while upto > 0:
        yield max(0, upto - size), upto
        upto -= size
        size = min(4 * size, LARGEST_BATCH)


def _matches(pattern: Pattern) -> str:
    if pattern.literal is None:
        return "content ~ %(pattern)s"
    # Looking for a literal takes half the time. As a CASE, because of two conditions the planner may take either first.
    return "CASE WHEN strpos(content, %(literal)s) > 0 THEN content ~ %(pattern)s ELSE false END"


def _spots(statement: str, pattern: Pattern, values: dict[str, Any]) -> list[Spot]:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, {**values, "pattern": pattern.expression, "literal": pattern.literal})
            fetched = cursor.fetchall()
    except DataError as error:
        raise _invalid(error) from error
    return [
        Spot(id, conversation_id, seq, at, around(content, begin - 1, end - 1, offset=offset))
        for id, conversation_id, seq, at, begin, end, content, offset in fetched
    ]


def _invalid(error: DataError) -> Invalid:
    said = str(error).splitlines()[0].removeprefix("invalid regular expression: ")
    return refused(f"This is not a valid regular expression: {said}.")
