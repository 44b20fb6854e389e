"""Reads an active context from its newest end, as far back as an answer within the budget can reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.planner import MAX_ATOM_MESSAGES, TAIL_REACH, sum_tokens
from compaction.policy import CompactionPolicy
from conversations.reading import array, rows
from conversations.records import ROLES
from conversations.types import ConversationRecord, Counters
from retrieval.assembly_types import AssemblyReason, LeftOut
from retrieval.receipts import LINES_LEFT_OUT
from retrieval.selection import Candidate, Group, edge_of, groups_of, inside, is_enough

# The first page is made to suffice; should sizes be very uneven, each further one doubles what is known.
SPARE = 1.5
SMALLEST_PAGE = 64
LARGEST_TYPICAL_ITEM = 500
END = 2**63 - 1

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


@dataclass(frozen=True)
class Window:
    """The newest groups of a context; `edge` is where they begin, None if they are all there is."""

    groups: Sequence[Group]
    begins: int
    edge: int | None = None


def read_window(*, conversation_id: int, counters: Counters, budget: int, policy: CompactionPolicy) -> Window:
    """All groups of a context that fits the budget; of a larger one, those that the budget can reach.

    What must be shown is in it wherever it lies.
    """
    # Behind what the budget reaches: as many as decide which groups are whole, and as a receipt names.
    behind = min(TAIL_REACH * policy.fresh_tail_count + MAX_ATOM_MESSAGES, counters.active_messages)
    margin = max(behind, LINES_LEFT_OUT)
    fits = counters.active_tokens <= budget
    size = END if fits else max(SMALLEST_PAGE, int(SPARE * budget / _typical_item(counters)) + margin)
    slots = _page(conversation_id, before=END, size=size, tokens=budget, margin=margin)
    groups = groups_of(slots, policy)
    while slots and not fits:
        if sum(slot.is_raw for slot in slots) == counters.active_messages and sum_tokens(slots) > budget:
            # Farther back are only summaries, each of which is whole by itself.
            return Window(groups, begins=1, edge=slots[0].ordinal)
        edge = edge_of(groups)
        if edge is not None and is_enough(groups, edge=edge, budget=budget, policy=policy):
            farther = _mandatory_before(conversation_id, slots)
            return Window([*farther, *inside(groups, edge)], begins=1, edge=edge)
        page = _page(conversation_id, before=slots[0].ordinal, size=len(slots), tokens=END, margin=0)
        if not page:
            break
        slots = page + slots
        groups = groups_of(slots, policy)
    return Window(groups, begins=slots[0].ordinal if slots else 1)


def _typical_item(counters: Counters) -> int:
    """What an item may cost; where most are summaries, the raw messages say little about that."""
    return max(1, min(LARGEST_TYPICAL_ITEM, counters.active_tokens // max(1, counters.active_messages)))


def _mandatory_before(conversation_id: int, slots: Sequence[Candidate]) -> list[Group]:
    """What must be shown of the context before these slots: system messages, and the newest question if it is there."""
    first = slots[0].ordinal
    system = candidates(rows(_SYSTEM, [conversation_id, first]))
    is_here = any(slot.is_question for slot in slots)
    question = [] if is_here else candidates(rows(_QUESTION, [conversation_id, first]))
    return [
        *(Group((message,), mandatory=AssemblyReason.SYSTEM) for message in system),
        *(Group((message,), mandatory=AssemblyReason.PINNED) for message in question),
    ]


def read_summaries(summary_ids: Iterable[str]) -> list[Candidate]:
    """These summaries, as far as they are items of the context."""
    return candidates(rows(_SUMMARIES, [list(summary_ids)]))


def read_totals(*, conversation: ConversationRecord, window: Window) -> LeftOut:
    """What the whole context holds; beyond a window, its counters know, and only summaries have to be counted."""
    counters = conversation.counters
    if window.edge is None:
        return LeftOut(
            messages=sum(len(group.candidates) for group in window.groups if not group.is_summary),
            summaries=sum(group.is_summary for group in window.groups),
            tokens=sum(group.tokens for group in window.groups),
        )
    summaries = 0
    if counters.active_messages < counters.message_count:
        summaries = rows(_COUNT_SUMMARIES, [conversation.conversation_id])[0][0]
    return LeftOut(messages=counters.active_messages, summaries=summaries, tokens=counters.active_tokens)


def _page(conversation_id: int, *, before: int, size: int, tokens: int, margin: int) -> list[Candidate]:
    return candidates(rows(_PAGE, [conversation_id, before, size, margin, tokens]))


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
    return [
        Candidate(
            ordinal=ordinal,
            tokens=tokens,
            message_id=message_id,
            summary_id=summary_id,
            role=ROLES.get(roles.get(message_id, "")),
            calls=tuple(calls.get(message_id, ())),
            is_answer=message_id in tools and message_id not in words and roles[message_id] == "user",
            last_seq=last_seq,
            is_recalled=is_recalled,
        )
        for ordinal, tokens, message_id, summary_id, last_seq in found
    ]
