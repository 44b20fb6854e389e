"""Finds the messages that answer a query: in the originals, whether the context shows them raw or through a summary."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from compaction.planning.planner import atoms
from conversations.types import Role
from retrieval.assembly.candidates import Candidate, Group
from retrieval.assembly.context_slots import EXCHANGES, REACH, ContextSlots, SlotPage, Sought, by_ordinal
from retrieval.assembly.selection import score
from retrieval.search.relevance.relevance_search import RankedMatch

# How many of the best answers are considered.
HITS = 200
# Most exchanges are a call or some at once, and what came back.
BESIDE = 4


@dataclass(frozen=True)
class Recall:
    """What a query found: scores by message, the summaries that stand for them, and what may be shown word for word."""

    scores: Mapping[int, float]
    # In order, each as often as it stands for one.
    summaries: Sequence[Candidate]
    stands_for: Mapping[str, Collection[int]]
    groups: Sequence[Group]


def in_turn(hits: Sequence[RankedMatch], *, last_seq: int) -> list[Sought]:
    """What is to be sought in a context of so many messages, the best first."""
    scores = _scores(hits, last_seq)
    # The numbers of the places that are beside one.
    places: dict[int, int] = {}
    sought: list[Sought] = []
    for hit in sorted(hits, key=lambda hit: scores[int(hit.id)], reverse=True):
        if hit.seq not in places:
            number = len(sought)
            for seq in range(hit.seq - BESIDE, hit.seq + BESIDE + 1):
                places.setdefault(seq, number)
        sought.append(Sought(int(hit.id), places[hit.seq]))
    return sought


def _scores(hits: Sequence[RankedMatch], last_seq: int) -> dict[int, float]:
    best = max((hit.worth for hit in hits), default=0.0)
    return {int(hit.id): score(worth=hit.worth, best=best, seq=hit.seq, last_seq=last_seq) for hit in hits}


def recall(context: ContextSlots, page: SlotPage, *, hits: Sequence[RankedMatch], known: Collection[int]) -> Recall:
    """Find these hits, which the page sought, with `known` the messages that the answer considers already."""
    scores = _scores(hits, context.counters.message_count)
    stands_for: dict[str, set[int]] = defaultdict(set)
    standing = [(summary, message_id) for summary, message_id in page.standing_for if message_id in scores]
    for summary, message_id in standing:
        stands_for[summary.id].add(message_id)
    sought = {message.message_id: message for message in page.sought}
    unknown = sorted((hit for hit in scores if hit not in known), key=lambda hit: scores[hit], reverse=True)
    found = _exchanges(context, page, [sought[hit] for hit in unknown if hit in sought], known)
    return Recall(
        scores=scores,
        summaries=sorted([summary for summary, _ in standing], key=by_ordinal),
        stands_for=stands_for,
        groups=[Group(group) for group in found],
    )


def _exchanges(
    context: ContextSlots, page: SlotPage, messages: Sequence[Candidate], known: Collection[int]
) -> list[tuple[Candidate, ...]]:
    """Each message with what it must be shown with: nothing, or the tool call and results that it is part of."""
    groups: list[tuple[Candidate, ...]] = []
    taken: set[int | None] = set()
    last_seq = context.counters.message_count
    around = _Around(last_seq, _windows(page.looked_around, last_seq), page.near)
    looked_up = 0
    for number, message in enumerate(messages):
        if message.message_id in taken:
            continue
        if not _is_of_an_exchange(message):
            exchange: tuple[Candidate, ...] | None = (message,)
        elif looked_up < EXCHANGES:
            if message.ordinal not in around.windows:
                rest = messages[number:]
                ahead = [each for each in rest if _is_of_an_exchange(each) and each.message_id not in taken]
                around = _around(context, _to_be_looked_up(ahead))
            exchange = around.exchange_of(message.ordinal)
            looked_up += 1
        else:
            exchange = None
        if exchange is not None and not any(each.message_id in taken for each in exchange):
            # A pinned question may stand in the middle of it, and is shown already.
            groups.append(tuple(each for each in exchange if each.message_id not in known))
            taken.update(each.message_id for each in exchange)
    return groups


def _is_of_an_exchange(message: Candidate) -> bool:
    return bool(message.calls) or message.role is Role.TOOL


def _to_be_looked_up(messages: Iterable[Candidate]) -> list[Candidate]:
    """So many that hardly ever more are wanted: what stands beside another is mostly of its exchange, and leaves room
    for one more."""
    chosen: list[Candidate] = []
    apart = 0
    for message in messages:
        if apart == EXCHANGES:
            break
        apart += all(abs(message.ordinal - each.ordinal) > BESIDE for each in chosen)
        chosen.append(message)
    return chosen


@dataclass(frozen=True)
class _Around:
    """Messages of a history of so many, and which of them are to be looked at around each place."""

    last_seq: int
    windows: Mapping[int, tuple[int, int]]
    neighbours: Sequence[Candidate]

    def exchange_of(self, ordinal: int) -> tuple[Candidate, ...] | None:
        """The group that this place is in; None if it reaches too far to be sure of it."""
        first, last = self.windows[ordinal]
        start = bisect_left(self.neighbours, first, key=by_ordinal)
        end = bisect_right(self.neighbours, last, key=by_ordinal)
        return _exchange_at(ordinal, self.neighbours[start:end], begins=first == 1, ends=last == self.last_seq)


def _around(context: ContextSlots, messages: Iterable[Candidate]) -> _Around:
    """All that is near these messages, in one question."""
    last_seq = context.counters.message_count
    windows = _windows((each.ordinal for each in messages), last_seq)
    return _Around(last_seq, windows, context.around(_joined(windows.values())))


def _windows(places: Iterable[int], last_seq: int) -> dict[int, tuple[int, int]]:
    return {place: (max(1, place - REACH), min(last_seq, place + REACH)) for place in places}


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
