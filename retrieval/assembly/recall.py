"""Add the hits of a query to the groups of a context; cut long messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from compaction.planning.planner import MAX_ATOM_MESSAGES, atoms
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.store.read import messages_of
from conversations.types import MessageRecord, Role
from retrieval.assembly.assembled_items import can_be_cut, in_part
from retrieval.assembly.context_slots import ContextSlots, Window
from retrieval.assembly.selection import (
    Candidate,
    Group,
    Passage,
    best_first,
    by_ordinal,
    room_of_hits,
    score,
    with_hits,
)
from retrieval.assembly.types import AssemblyReason
from retrieval.search.request import FoundRow
from retrieval.search.snippets import Needles, passage

# The maximum number of hits that are considered.
HITS = 200
# If a hit is a tool call or result, the rest of the exchange is read, for this many hits. Messages of one exchange are
# usually at most BESIDE seqs apart.
EXCHANGES = 12
BESIDE = 4

# A hit that is larger than LARGEST_SHARE of the tokens for hits is cut, but at most MOST_IN_PART hits are. The fresh
# tail is cut if mandatory groups exceed SHARE_OF_MANDATORY of the budget. docs/figures.md compares other values.
LARGEST_SHARE, MOST_IN_PART, SHARE_OF_MANDATORY = 0.125, 48, 0.75
# A cut message is shown as a passage of PASSAGE characters. Messages with fewer than LONG tokens are never cut.
PASSAGE, LONG = 400, 150


def with_recalled(context: ContextSlots, window: Window, hits: Sequence[FoundRow]) -> list[Group]:
    """Add the hits, and the summaries that replace hits, to the groups of the window."""
    last_seq = context.counters.message_count
    hits = [hit for hit in hits if hit.order_place <= last_seq]
    best = max((hit.worth for hit in hits), default=0.0)
    scores = {int(hit.id): score(worth=hit.worth, best=best, seq=hit.order_place, last_seq=last_seq) for hit in hits}
    known = [candidate for group in window.groups for candidate in group.candidates]

    near = {candidate.summary_id for candidate in known}
    covers: dict[str, set[int]] = defaultdict(set)
    farther: dict[str, Group] = {}
    for summary, message_id in sorted(window.newest.standing_for, key=lambda pair: pair[0].ordinal):
        if message_id in scores:
            covers[summary.id].add(message_id)
            if summary.id not in near:
                farther[summary.id] = Group((summary,))

    shown = {candidate.message_id for candidate in known if candidate.message_id is not None}
    sought = {message.message_id: message for message in window.newest.sought}
    unknown = sorted((hit for hit in scores if hit not in shown), key=lambda hit: scores[hit], reverse=True)
    found = _exchanges(context, [sought[hit] for hit in unknown if hit in sought], shown)
    return with_hits([*window.groups, *farther.values(), *map(Group, found)], scores, covers)


def _exchanges(
    context: ContextSlots, messages: Sequence[Candidate], known: Collection[int]
) -> list[tuple[Candidate, ...]]:
    """Group each message with the tool call and results of its exchange, if any."""
    groups: list[tuple[Candidate, ...]] = []
    taken: set[int | None] = set()
    places: set[int] = set()
    neighbours: list[Candidate] = []
    looked_up = 0
    for number, message in enumerate(messages):
        if message.message_id in taken:
            continue
        if not _is_of_an_exchange(message):
            exchange: tuple[Candidate, ...] | None = (message,)
        elif looked_up < EXCHANGES:
            if message.ordinal not in places:
                ahead = [each for each in messages[number:] if _is_of_an_exchange(each)]
                places = _next_places(each.ordinal for each in ahead if each.message_id not in taken)
                neighbours = context.around(places)
            exchange = _exchange_at(message.ordinal, neighbours, last_seq=context.counters.message_count)
            looked_up += 1
        else:
            exchange = None
        if exchange is not None and not any(each.message_id in taken for each in exchange):
            # Messages that the context already has, such as a pinned question in the exchange, are not added again.
            groups.append(tuple(each for each in exchange if each.message_id not in known))
            taken.update(each.message_id for each in exchange)
    return groups


def _is_of_an_exchange(message: Candidate) -> bool:
    return bool(message.calls) or message.role is Role.TOOL


def _next_places(seqs: Iterable[int]) -> set[int]:
    """Choose seqs whose neighbours one query reads; seqs within BESIDE count as one."""
    chosen: set[int] = set()
    apart = 0
    for seq in seqs:
        if apart == EXCHANGES:
            break
        apart += all(abs(seq - each) > BESIDE for each in chosen)
        chosen.add(seq)
    return chosen


def _exchange_at(seq: int, neighbours: Sequence[Candidate], *, last_seq: int) -> tuple[Candidate, ...] | None:
    """The exchange that contains this seq; None if messages of it may be unread."""
    first, last = max(1, seq - MAX_ATOM_MESSAGES), min(last_seq, seq + MAX_ATOM_MESSAGES)
    near = neighbours[bisect_left(neighbours, first, key=by_ordinal) : bisect_right(neighbours, last, key=by_ordinal)]
    for atom in atoms(near):
        if any(slot.ordinal == seq for slot in atom):
            starts_inside = first == 1 or atom[0].ordinal > near[0].ordinal
            ends_inside = last == last_seq or atom[-1].ordinal < near[-1].ordinal
            return atom if starts_inside and ends_inside else None
    return None


@dataclass(frozen=True)
class Shortening:
    """Cuts long messages to passages, so that more hits fit into the budget."""

    lexemes: Mapping[str, float]
    budget: int
    count: Callable[[str], int]

    @cached_property
    def needles(self) -> Needles:
        return Needles.of(self.lexemes)

    def of(self, groups: Sequence[Group]) -> list[Group]:
        """Replace some long messages by passages of them.

        First, messages of the fresh tail are cut, oldest first, until the mandatory groups leave enough tokens. The
        newest question and the messages after it are never cut. Then, if not all hits fit, large hits are cut. With the
        remaining tokens, the best of them are shown in full after all.
        """
        groups = self._with_room(groups)
        room = room_of_hits(groups, self.budget)
        answers = best_first(group for group in groups if group.hits and not (group.mandatory or group.is_summary))
        if sum(group.tokens for group in answers) <= room:
            return groups
        parts = self._parts([group for group in answers if group.tokens > room * LARGEST_SHARE][:MOST_IN_PART])
        shown = []
        for group in answers:
            tokens = parts.get(group.newest, group).tokens
            if tokens <= room:
                room -= tokens
                shown.append(group)
        for group in shown:
            more = group.tokens - parts.get(group.newest, group).tokens
            if 0 < more <= room:
                room -= more
                del parts[group.newest]
        return [parts.get(group.newest, group) for group in groups]

    def _with_room(self, groups: Sequence[Group]) -> list[Group]:
        """Cut messages of the fresh tail if mandatory groups leave too few tokens."""
        mandatory = [group for group in groups if group.mandatory]
        excess = sum(group.tokens for group in mandatory) - int(self.budget * SHARE_OF_MANDATORY)
        if excess <= 0:
            return list(groups)
        newest = max((each.ordinal for group in mandatory for each in group.candidates if each.is_question), default=0)
        tail = [group for group in mandatory if group.mandatory is AssemblyReason.FRESH_TAIL]
        parts = self._parts([group for group in tail if group.candidates[-1].ordinal < newest])
        shown = []
        for group in groups:
            part = parts.get(group.newest, group) if excess > 0 else group
            excess -= group.tokens - part.tokens
            shown.append(part)
        return shown

    def _parts(self, groups: Iterable[Group]) -> dict[tuple[int, bool], Group]:
        """Cut the long messages of each group; the keys are the groups' positions."""
        groups = list(groups)
        ids = [each.message_id for group in groups for each in group.candidates if each.tokens >= LONG]
        cut = {message.message_id: message for message in messages_of(list(filter(None, ids))) if can_be_cut(message)}
        return {
            group.newest: group._replace(
                candidates=tuple(self._in_part(each, cut.get(each.message_id or 0)) for each in group.candidates)
            )
            for group in groups
        }

    def _in_part(self, candidate: Candidate, message: MessageRecord | None) -> Candidate:
        if message is None:
            return candidate
        begin, end = passage(message.content, self.needles, width=PASSAGE)
        tokens = self.count(in_part(message, begin, end)) + MESSAGE_OVERHEAD_TOKENS
        if tokens >= candidate.tokens:
            return candidate
        return candidate._replace(tokens=tokens, passage=Passage(begin, end, candidate.tokens - tokens))
