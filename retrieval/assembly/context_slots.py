"""What a context is made of, slot by slot: the stored one here, that of a past moment in `past`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from conversations.reading import array, rows
from conversations.records import ROLES
from conversations.types import Counters
from retrieval.assembly.candidates import Candidate
from retrieval.lineage_steps import above_messages

# Of the newest items before an ordinal, at most so many: those that the tokens reach, and a margin behind them. What a
# summary reaches to is looked up for each, for in a join the planner may think a scan of all worth its while.
_PAGE = """
    WITH newest AS MATERIALIZED (
        SELECT ordinal, token_count, message_id, summary_id,
               row_number() OVER newest_first AS place,
               sum(token_count) OVER newest_first - token_count AS newer_tokens
        FROM context_items
        WHERE conversation_id = %s AND ordinal < %s
        WINDOW newest_first AS (ORDER BY ordinal DESC)
        ORDER BY ordinal DESC
        LIMIT %s
    )
    SELECT ordinal, token_count, message_id, summary_id,
           coalesce((SELECT s.last_seq FROM summaries s WHERE s.summary_id = newest.summary_id), ordinal)
    FROM newest
    WHERE place <= %s + (SELECT count(*) FROM newest WHERE newer_tokens <= %s)
    ORDER BY ordinal
"""
_SYSTEM = """
    SELECT c.ordinal, c.token_count, c.message_id, NULL, c.ordinal
    FROM messages m
    JOIN context_items c ON c.message_id = m.message_id
    WHERE m.conversation_id = %s AND m.seq < %s AND m.role = 'system'
    ORDER BY c.ordinal
"""
# A user's message that only carries tool results is nobody's question.
_QUESTION = """
    SELECT c.ordinal, c.token_count, c.message_id, NULL, c.ordinal
    FROM messages m
    JOIN context_items c ON c.message_id = m.message_id
    WHERE m.conversation_id = %s AND m.seq < %s AND m.role = 'user'
      AND coalesce((
          SELECT bool_or(p.part_type IN ('text', 'file')) OR NOT bool_or(p.part_type = 'tool')
          FROM message_parts p WHERE p.message_id = m.message_id
      ), true)
    ORDER BY m.seq DESC
    LIMIT 1
"""
_SUMMARIES = """
    SELECT c.ordinal, c.token_count, NULL, c.summary_id, s.last_seq
    FROM context_items c
    JOIN summaries s ON s.summary_id = c.summary_id
    WHERE c.summary_id = ANY(%s)
    ORDER BY c.ordinal
"""
_COUNT_SUMMARIES = "SELECT count(*) FROM context_items WHERE conversation_id = %s AND item_type = 'summary'"
# All of the messages at once: to look up each where it is found takes four times as long.
_SPEAKERS_AND_PARTS = """
    SELECT message_id, role::text, NULL, NULL FROM messages WHERE message_id = ANY(%(ids)s)
    UNION ALL
    SELECT message_id, NULL, part_type::text, tool_call_id FROM message_parts WHERE message_id = ANY(%(ids)s)
"""
_SHOWN_RAW = "SELECT message_id FROM context_items WHERE message_id = ANY(%s)"

# To the summary that the context shows.
_STANDING_FOR = f"""
    {above_messages("%s")}
    SELECT above.summary_id, above.message_id
    FROM above JOIN context_items c ON c.summary_id = above.summary_id
"""


class ContextSlots(Protocol):
    """A context that can be read from its newest end."""

    @property
    def conversation_id(self) -> int: ...

    @property
    def counters(self) -> Counters: ...

    def page(self, *, before: int, size: int, tokens: int, margin: int) -> list[Candidate]:
        """At most `size` slots, the newest before an ordinal: those that the tokens reach, and a margin behind them."""

    def system_before(self, ordinal: int) -> list[Candidate]:
        """The system messages before an ordinal."""

    def question_before(self, ordinal: int) -> list[Candidate]:
        """The newest question of a user before an ordinal, if there is one."""

    def count_summaries(self) -> int: ...

    def summaries(self, summary_ids: Iterable[str]) -> list[Candidate]:
        """These summaries, as far as they are in the context."""

    def shown_raw(self, message_ids: Iterable[int]) -> Collection[int]:
        """Which of these messages are in the context themselves."""

    def standing_for(self, message_ids: Iterable[int]) -> list[tuple[str, int]]:
        """The summaries of the context that stand for these messages, each with the message."""


@dataclass(frozen=True)
class StoredContext:
    """The context as it is now, from its own table."""

    conversation_id: int
    counters: Counters

    def page(self, *, before: int, size: int, tokens: int, margin: int) -> list[Candidate]:
        return candidates(rows(_PAGE, [self.conversation_id, before, size, margin, tokens]))

    def system_before(self, ordinal: int) -> list[Candidate]:
        return candidates(rows(_SYSTEM, [self.conversation_id, ordinal]))

    def question_before(self, ordinal: int) -> list[Candidate]:
        return candidates(rows(_QUESTION, [self.conversation_id, ordinal]))

    def count_summaries(self) -> int:
        if self.counters.active_messages == self.counters.message_count:
            return 0
        [[count]] = rows(_COUNT_SUMMARIES, [self.conversation_id])
        return int(count)

    def summaries(self, summary_ids: Iterable[str]) -> list[Candidate]:
        return candidates(rows(_SUMMARIES, [list(summary_ids)]))

    def shown_raw(self, message_ids: Iterable[int]) -> Collection[int]:
        return {message_id for (message_id,) in rows(_SHOWN_RAW, [array(message_ids)])}

    def standing_for(self, message_ids: Iterable[int]) -> list[tuple[str, int]]:
        return [(summary_id, message_id) for summary_id, message_id in rows(_STANDING_FOR, [array(message_ids)])]


def candidates(found: Sequence[tuple[Any, ...]], *, is_recalled: bool = False) -> list[Candidate]:
    """Rows as candidates, the messages with who said them and the tool calls that they make or answer."""
    roles: dict[int | None, str] = {}
    calls: dict[int, list[str]] = defaultdict(list)
    tools: set[int] = set()
    words: set[int] = set()
    message_ids = [row[2] for row in found if row[2] is not None]
    known = rows(_SPEAKERS_AND_PARTS, {"ids": array(message_ids)}) if message_ids else []
    for message_id, role, part_type, call_id in known:
        if role is not None:
            roles[message_id] = role
        elif part_type == "tool":
            tools.add(message_id)
            if call_id is not None:
                calls[message_id].append(call_id)
        elif part_type in ("text", "file"):
            words.add(message_id)
    # By place, and past the constructor: to name each field takes as long again.
    made = Candidate._make
    return [
        made(
            (
                ordinal,
                tokens,
                message_id,
                summary_id,
                ROLES.get(roles.get(message_id, "")),
                None,
                tuple(calls[message_id]) if message_id in calls else (),
                message_id in tools and message_id not in words and roles[message_id] == "user",
                last_seq,
                is_recalled,
            )
        )
        for ordinal, tokens, message_id, summary_id, last_seq in found
    ]
