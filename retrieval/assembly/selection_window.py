"""Read a context from its newest end, as far back as the budget can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.planning.planner import MAX_ATOM_MESSAGES, TAIL_REACH, sum_tokens
from compaction.policy import CompactionPolicy
from conversations.types import Counters
from retrieval.assembly.candidates import Candidate, Group
from retrieval.assembly.context_slots import ContextSlots, SlotPage
from retrieval.assembly.receipts import LINES_LEFT_OUT
from retrieval.assembly.selection import edge_of, groups_of, inside, is_enough
from retrieval.assembly.types import AssemblyReason, LeftOut

# The first page is made to suffice; should sizes be very uneven, each further one doubles what is known.
SPARE = 1.5
SMALLEST_PAGE = 64
LARGEST_TYPICAL_ITEM = 500
END = 2**63 - 1


@dataclass(frozen=True)
class Window:
    """The newest groups of a context; `edge` is where they begin, None if they are all there is."""

    groups: Sequence[Group]
    begins: int
    # The newest page, with what it says of the whole context.
    newest: SlotPage
    edge: int | None = None


def read_window(context: ContextSlots, *, budget: int, policy: CompactionPolicy) -> Window:
    """All groups of a context, or of a large one those that the budget can reach.

    What must be shown is in it wherever it lies.
    """
    counters = context.counters
    # Behind what the budget reaches: as many as decide which groups are whole, and as a receipt names.
    behind = min(TAIL_REACH * policy.fresh_tail_count + MAX_ATOM_MESSAGES, counters.active_messages)
    margin = max(behind, LINES_LEFT_OUT)
    fits = counters.active_tokens <= budget
    size = END if fits else max(SMALLEST_PAGE, int(SPARE * budget / _typical_item(counters)) + margin)
    newest = page = context.page(before=END, size=size, tokens=budget, margin=margin, is_all=fits)
    slots = page.slots
    groups = groups_of(slots, policy)
    while slots and not fits:
        if (
            sum([slot.message_id is not None for slot in slots]) == counters.active_messages
            and sum_tokens(slots) > budget
        ):
            # Farther back are only summaries, each of which is whole by itself.
            return Window(groups, begins=1, newest=newest, edge=slots[0].ordinal)
        edge = edge_of(groups)
        if edge is not None and is_enough(groups, edge=edge, budget=budget, policy=policy):
            farther = _mandatory_before(page, slots)
            return Window([*farther, *inside(groups, edge)], begins=1, newest=newest, edge=edge)
        page = context.page(before=slots[0].ordinal, size=len(slots), tokens=END, margin=0, is_all=False)
        if not page.slots:
            break
        slots = page.slots + slots
        groups = groups_of(slots, policy)
    return Window(groups, begins=slots[0].ordinal if slots else 1, newest=newest)


def _typical_item(counters: Counters) -> int:
    """The tokens that an item typically costs."""
    return max(1, min(LARGEST_TYPICAL_ITEM, counters.active_tokens // max(1, counters.active_messages)))


def _mandatory_before(page: SlotPage, slots: Sequence[Candidate]) -> list[Group]:
    """The mandatory groups before these slots: system messages, the newest question."""
    before = sorted(
        [slot for slot in page.before if slot.ordinal < slots[0].ordinal],
        key=lambda slot: (not slot.is_system, slot.ordinal),
    )
    return [
        Group((slot,), mandatory=AssemblyReason.SYSTEM if slot.is_system else AssemblyReason.PINNED) for slot in before
    ]


def totals(context: ContextSlots, window: Window) -> LeftOut:
    """The totals of the whole context, from its counters beyond a window."""
    if window.edge is None:
        return LeftOut(
            messages=sum(len(group.candidates) for group in window.groups if not group.is_summary),
            summaries=sum(group.is_summary for group in window.groups),
            tokens=sum(group.tokens for group in window.groups),
        )
    counters = context.counters
    return LeftOut(messages=counters.active_messages, summaries=window.newest.summaries, tokens=counters.active_tokens)
