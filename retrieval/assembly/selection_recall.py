"""Finds the messages that answer a query: in the originals, whether the context shows them raw or through a summary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from compaction.planner import MAX_ATOM_MESSAGES, atoms
from conversations.reading import array, rows
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.types import Role
from retrieval.assembly.candidates import Candidate, Group
from retrieval.assembly.context_slots import ContextSlots, candidates
from retrieval.assembly.selection import score
from retrieval.search.full_text import Found

# How many of the best answers are considered, and for how many of those that call a tool, or answer a call, the rest of
# that exchange is looked up.
HITS = 200
EXCHANGES = 12

# An exchange has no more messages than this, so none of it can lie farther from the hit.
REACH = MAX_ATOM_MESSAGES

_MESSAGES = """
    SELECT m.seq, m.token_count + %s, m.message_id, NULL, m.seq
    FROM messages m WHERE m.message_id = ANY(%s) ORDER BY m.seq
"""
_NEIGHBOURS = """
    SELECT m.seq, m.token_count + %s, m.message_id, NULL, m.seq
    FROM messages m WHERE m.conversation_id = %s AND m.seq BETWEEN %s AND %s ORDER BY m.seq
"""


@dataclass(frozen=True)
class Recall:
    """What a query found: scores by message, the summaries that stand for them, and what may be shown word for word."""

    scores: Mapping[int, float]
    stands_for: Mapping[str, Collection[int]]
    groups: Sequence[Group]


def recall(context: ContextSlots, *, last_seq: int, hits: Sequence[Found], known: Collection[int]) -> Recall:
    """Of these hits, with `known` the messages that the answer considers already."""
    best = max((hit.worth for hit in hits), default=0.0)
    scores = {int(hit.id): score(worth=hit.worth, best=best, seq=hit.seq, last_seq=last_seq) for hit in hits}
    stands_for: dict[str, set[int]] = defaultdict(set)
    for summary_id, message_id in context.standing_for(scores) if scores else ():
        stands_for[summary_id].add(message_id)
    unknown = sorted((hit for hit in scores if hit not in known), key=lambda hit: scores[hit], reverse=True)
    found = _exchanges(context, last_seq, unknown, known) if unknown else []
    return Recall(scores=scores, stands_for=stands_for, groups=found)


def _exchanges(context: ContextSlots, last_seq: int, hits: Sequence[int], known: Collection[int]) -> list[Group]:
    """Each hit with what it must be shown with: nothing, or the tool call and results that it is part of."""
    place = {hit: number for number, hit in enumerate(hits)}
    messages = candidates(rows(_MESSAGES, [MESSAGE_OVERHEAD_TOKENS, array(hits)]))
    messages.sort(key=lambda message: place[message.message_id or 0])
    groups: list[tuple[Candidate, ...]] = []
    taken: set[int | None] = set()
    looked_up = 0
    for message in messages:
        if message.message_id in taken:
            continue
        if not message.calls and message.role is not Role.TOOL:
            exchange: tuple[Candidate, ...] | None = (message,)
        elif looked_up < EXCHANGES:
            looked_up += 1
            exchange = _exchange_around(context.conversation_id, last_seq, message)
        else:
            exchange = None
        if exchange is not None and not any(each.message_id in taken for each in exchange):
            # A pinned question may stand in the middle of it, and is shown already.
            groups.append(tuple(each for each in exchange if each.message_id not in known))
            taken.update(each.message_id for each in exchange)
    return _recalled(context, groups)


def _exchange_around(conversation_id: int, last_seq: int, message: Candidate) -> tuple[Candidate, ...] | None:
    """The group of a message among its neighbours; None if it reaches too far to be sure of it."""
    first, last = max(1, message.ordinal - REACH), min(last_seq, message.ordinal + REACH)
    neighbours = candidates(rows(_NEIGHBOURS, [MESSAGE_OVERHEAD_TOKENS, conversation_id, first, last]))
    for atom in atoms(neighbours):
        if any(slot.ordinal == message.ordinal for slot in atom):
            starts_inside = first == 1 or atom[0].ordinal > first
            ends_inside = last == last_seq or atom[-1].ordinal < last
            return atom if starts_inside and ends_inside else None
    return None


def _recalled(context: ContextSlots, groups: Iterable[tuple[Candidate, ...]]) -> list[Group]:
    """The groups with those messages marked that the context does not show itself."""
    ids = [each.message_id for group in groups for each in group if each.message_id is not None]
    shown_raw = context.shown_raw(ids) if ids else ()
    return [
        Group(tuple(each if each.message_id in shown_raw else each._replace(is_recalled=True) for each in group))
        for group in groups
    ]
