"""Finds the messages that answer a query: in the originals, whether the context shows them raw or through a summary."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter

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

_ordinal = attrgetter("ordinal")

_MESSAGES = """
    SELECT m.seq, m.token_count + %s, m.message_id, NULL, m.seq
    FROM messages m WHERE m.message_id = ANY(%s) ORDER BY m.seq
"""
_NEIGHBOURS = """
    SELECT m.seq, m.token_count + %s, m.message_id, NULL, m.seq
    FROM unnest(%s::bigint[], %s::bigint[]) AS given(first_seq, last_seq)
    JOIN messages m ON m.conversation_id = %s AND m.seq BETWEEN given.first_seq AND given.last_seq ORDER BY m.seq
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
    around: dict[int, tuple[Candidate, ...] | None] = {}
    looked_up = 0
    for number, message in enumerate(messages):
        if message.message_id in taken:
            continue
        if not _is_of_an_exchange(message):
            exchange: tuple[Candidate, ...] | None = (message,)
        elif looked_up < EXCHANGES:
            if message.ordinal not in around:
                # Those that come next, in one go; what they take from each other leaves room for more.
                ahead = (
                    each for each in messages[number:] if _is_of_an_exchange(each) and each.message_id not in taken
                )
                around |= _exchanges_around(context.conversation_id, last_seq, islice(ahead, EXCHANGES - looked_up))
            exchange = around[message.ordinal]
            looked_up += 1
        else:
            exchange = None
        if exchange is not None and not any(each.message_id in taken for each in exchange):
            # A pinned question may stand in the middle of it, and is shown already.
            groups.append(tuple(each for each in exchange if each.message_id not in known))
            taken.update(each.message_id for each in exchange)
    return _recalled(context, groups)


def _is_of_an_exchange(message: Candidate) -> bool:
    return bool(message.calls) or message.role is Role.TOOL


def _exchanges_around(
    conversation_id: int, last_seq: int, messages: Iterable[Candidate]
) -> dict[int, tuple[Candidate, ...] | None]:
    """The group of each message among its neighbours, by its place; None if it reaches too far to be sure of it."""
    windows = {each.ordinal: (max(1, each.ordinal - REACH), min(last_seq, each.ordinal + REACH)) for each in messages}
    firsts, lasts = zip(*_joined(windows.values()), strict=True)
    given = [MESSAGE_OVERHEAD_TOKENS, array(firsts), array(lasts), conversation_id]
    neighbours = candidates(rows(_NEIGHBOURS, given))
    exchanges = {}
    for ordinal, (first, last) in windows.items():
        start = bisect_left(neighbours, first, key=_ordinal)
        end = bisect_right(neighbours, last, key=_ordinal)
        exchanges[ordinal] = _exchange_at(ordinal, neighbours[start:end], begins=first == 1, ends=last == last_seq)
    return exchanges


def _joined(windows: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same seqs in windows that do not overlap."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(windows):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def _exchange_at(
    ordinal: int, neighbours: Sequence[Candidate], *, begins: bool, ends: bool
) -> tuple[Candidate, ...] | None:
    """The group that this place is in; `begins` and `ends` say whether the history does, where the neighbours do."""
    for atom in atoms(neighbours):
        if any(slot.ordinal == ordinal for slot in atom):
            starts_inside = begins or atom[0].ordinal > neighbours[0].ordinal
            ends_inside = ends or atom[-1].ordinal < neighbours[-1].ordinal
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
