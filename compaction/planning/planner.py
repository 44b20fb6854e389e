"""Choose what to summarize next. Pure: slots and a policy in, chunks out.

Terms: a *slot* is one context item; a *raw* slot is a message, not a summary. An *atom* is a sequence of raw slots that
must stay together: a tool call, its results, and the messages between them. A *chunk* is the slots that one summary
will be made from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, Protocol, TypeVar

from compaction.policy import CompactionPolicy, is_worth_summarizing
from conversations.types import Role

# Maximum number of messages in an atom. Without a limit, a late result of one call, or an endless chain of overlapping
# calls, would make a whole history one atom, which could not be compacted.
MAX_ATOM_MESSAGES = 256

# The fresh tail is extended back to the newest user message, up to this multiple of its configured size.
TAIL_REACH = 2


class AnySlot(Protocol):
    """The fields of a slot that `fresh_tail` and `atoms` need."""

    @property
    def ordinal(self) -> int: ...

    @property
    def tokens(self) -> int: ...

    @property
    def role(self) -> Role | None: ...

    @property
    def calls(self) -> tuple[Hashable, ...]: ...

    @property
    def message_id(self) -> int | None: ...

    @property
    def is_answer(self) -> bool: ...


S = TypeVar("S", bound=AnySlot)


class Slot(NamedTuple):
    """The fields of a context item that planning needs.

    A NamedTuple, because it is cheaper than a frozen dataclass, and a context may have a hundred thousand slots.
    """

    ordinal: int
    tokens: int
    message_id: int | None = None
    summary_id: str | None = None
    role: Role | None = None
    # These two are None for a message: its ordinal is its seq.
    depth: int | None = None
    last_seq: int | None = None
    # The ids of the tool calls that this message makes or answers.
    calls: tuple[Hashable, ...] = ()
    # Whether this is a user's message with only tool results, which is no question.
    is_answer: bool = False

    @property
    def is_raw(self) -> bool:
        return self.message_id is not None


@dataclass(frozen=True)
class Protected:
    """The ordinals that compaction must not touch, by reason."""

    system: frozenset[int]
    tail: frozenset[int]
    pinned: frozenset[int]
    # The ordinals that no summary may span, so that the context stays in order. This is a pinned question, unless it is
    # part of an atom with other messages, because an atom must not be split.
    borders: frozenset[int] = frozenset()

    def __contains__(self, ordinal: int) -> bool:
        return ordinal in self.tail or ordinal in self.system or ordinal in self.pinned


def atoms(slots: Iterable[S]) -> list[tuple[S, ...]]:
    """Group raw slots into atoms, without system messages.

    A tool message belongs to the message before it. A result belongs to the latest call with its id, together with all
    messages between them.
    """
    raw = [slot for slot in slots if slot.message_id is not None and slot.role is not Role.SYSTEM]
    # Maps the index of a message to the last index that belongs to the same atom.
    reach: dict[int, int] = {}
    called_at: dict[Hashable, int] = {}
    for place, slot in enumerate(raw):
        for call in slot.calls:
            first = called_at.get(call)
            # Ids are not unique in a history: if the assistant repeats one, it is a new call.
            if first is None or slot.role is Role.ASSISTANT or place - first >= MAX_ATOM_MESSAGES:
                called_at[call] = place
            else:
                # Indexes ascend, so this is the last one so far.
                reach[first] = place
        if slot.role is Role.TOOL:
            reach[place - 1] = place
    groups = []
    first = 0
    while first < len(raw):
        last, behind = reach.get(first, first), first + 1
        while behind <= last and behind - first < MAX_ATOM_MESSAGES:
            last = max(last, reach.get(behind, 0))
            behind += 1
        groups.append(tuple(raw[first:behind]))
        first = behind
    return groups


def fresh_tail(
    slots: Collection[S], policy: CompactionPolicy, *, groups: Iterable[tuple[S, ...]] | None = None
) -> Protected:
    """Return what is protected: system messages, newest messages, newest question.

    The tail is extended back to the newest question if that is near, so that the current turn is complete. If an agent
    has worked on its own for long, the newest question is far back. Then it is pinned: the question stays, and the
    messages after it may be compacted. With a `fresh_tail_count` of 0, only system messages are protected. `groups` are
    the atoms of the slots, if the caller has them already.
    """
    # Each atom has at least one slot, so the tail needs no more atoms than this.
    newest: deque[tuple[S, ...]] = deque(maxlen=TAIL_REACH * policy.fresh_tail_count)
    question: S | None = None
    question_atom: tuple[S, ...] = ()
    back = 0
    for group in atoms(slots) if groups is None else groups:
        newest.append(group)
        back += len(group)
        for slot in group:
            if slot.role is Role.USER and not slot.is_answer:
                question, question_atom, back = slot, group, len(group)
    wanted = policy.fresh_tail_count
    if question is not None:
        back -= question_atom.index(question)
        if back <= TAIL_REACH * policy.fresh_tail_count:
            wanted = max(wanted, back)
    tail: set[int] = set()
    for group in reversed(newest):
        if len(tail) >= wanted:
            break
        tail.update(slot.ordinal for slot in group)
    is_pinned = question is not None and policy.fresh_tail_count and question.ordinal not in tail
    pinned = frozenset({question.ordinal}) if question is not None and is_pinned else frozenset()
    return Protected(
        system=frozenset(slot.ordinal for slot in slots if slot.role is Role.SYSTEM),
        tail=frozenset(tail),
        pinned=pinned,
        borders=pinned if len(question_atom) == 1 else frozenset(),
    )


def up_to(slots: Sequence[Slot], last_seq: int) -> list[Slot]:
    """Return the slots up to a message, without an atom that continues after it."""
    split = (group[0].ordinal for group in atoms(slots) if group[-1].ordinal > last_seq)
    end = min(next(split, last_seq + 1), last_seq + 1)
    return [slot for slot in slots if slot.ordinal < end]


def leaf_chunks(slots: Iterable[Slot], protected: Protected, policy: CompactionPolicy) -> Iterator[tuple[Slot, ...]]:
    """Yield the chunks of the leaf pass, oldest first, in whole atoms.

    System messages are skipped. A summary or a pinned question ends a chunk, so that the context stays in order. An
    atom that is larger than a chunk becomes a chunk by itself.
    """
    for goes_on, run in groupby(slots, key=lambda slot: slot.is_raw and slot.ordinal not in protected.borders):
        chunk: list[Slot] = []
        tokens = 0
        for group in atoms(run) if goes_on else ():
            free = [slot for slot in group if slot.ordinal not in protected]
            # A full batch that is too short to be worth a summary keeps growing. Otherwise it would never be compacted.
            is_full = 0 < policy.leaf_batch_messages < len(chunk) + len(free) and _is_worth_a_leaf(chunk, policy)
            if chunk and (is_full or tokens + sum_tokens(free) > policy.leaf_chunk_tokens):
                if _is_worth_a_leaf(chunk, policy):
                    yield tuple(chunk)
                chunk, tokens = [], 0
            chunk += free
            tokens += sum_tokens(free)
        if _is_worth_a_leaf(chunk, policy):
            yield tuple(chunk)


def _is_worth_a_leaf(chunk: Sequence[Slot], policy: CompactionPolicy) -> bool:
    return is_worthwhile(chunk, leaf_target(chunk, policy))


def is_worthwhile(chunk: Sequence[Slot], target: int) -> bool:
    """Whether a summary of `target` tokens costs enough less than the chunk."""
    return bool(chunk) and is_worth_summarizing(sum_tokens(chunk), target)


def condensed_chunk(slots: Iterable[Slot], protected: Protected, policy: CompactionPolicy) -> tuple[Slot, ...] | None:
    """Return the next chunk of the condensed pass, or None.

    The chunk has the oldest adjacent summaries of the shallowest depth that has enough of them. Raw slots before and
    between them, which were not worth a leaf summary, are included. System messages are skipped. Summaries before and
    after a pinned question are not adjacent.
    """
    best: list[Slot] | None = None
    for run in _runs_of_one_depth(slots, protected):
        summaries = [slot for slot in run if not slot.is_raw]
        depth = summaries[0].depth or 0
        if len(summaries) < policy.condense_fan_in or (policy.max_depth >= 0 and depth >= policy.max_depth):
            continue
        if best is None or depth < max(slot.depth or 0 for slot in best):
            last = summaries[policy.condense_fan_in - 1].ordinal
            chunk = [slot for slot in run if slot.ordinal <= last]
            if is_worthwhile(chunk, condensed_target(chunk, policy)):
                best = chunk
    return tuple(best) if best else None


def _runs_of_one_depth(slots: Iterable[Slot], protected: Protected) -> Iterator[list[Slot]]:
    run: list[Slot] = []
    strays: list[Slot] = []
    for slot in slots:
        if slot.is_raw and slot.ordinal not in protected:
            strays.append(slot)
        elif slot.ordinal in protected.borders or (not slot.is_raw and run and slot.depth != run[-1].depth):
            if run:
                yield run
            run = []
        if slot.ordinal in protected.borders:
            strays = []
        if not slot.is_raw:
            run += [*strays, slot]
            strays = []
    if run:
        yield run


def leaf_target(chunk: Sequence[Slot], policy: CompactionPolicy) -> int:
    """Return the target number of tokens for a leaf summary of this chunk."""
    return policy.target_of(sum_tokens(chunk), depth=0)


def condensed_target(chunk: Sequence[Slot], policy: CompactionPolicy) -> int:
    return policy.target_of(sum_tokens(chunk), depth=1)


def sum_tokens(slots: Iterable[AnySlot]) -> int:
    return sum(slot.tokens for slot in slots)
