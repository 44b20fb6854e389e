"""Recompute contexts and counters from messages, summaries and lineage.

Most functions take a conversation's id and return a record of what they would change or have changed. The record's
`reversed` undoes it. Call functions that write in a transaction: they lock the conversation's row until its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.errors import Conflict, NotFound
from conversations.models import ContextItem, Conversation, Summary, SummaryParent
from conversations.sql import execute, load, rows
from conversations.store.paths import active_path
from conversations.types import ContextItemType, SummaryRecord

# Computes the tokens of a summary as it is rendered in a context: `compaction.rendering.context_cost_of`.
CostOf = Callable[[SummaryRecord], int]

_SQL = load("conversations/context.sql")


@dataclass(frozen=True)
class ItemRow:
    """A row of context_items; a row to be inserted may have no `created_at`."""

    conversation_id: int
    ordinal: int
    item_type: ContextItemType
    message_id: int | None
    summary_id: str | None
    token_count: int
    created_at: datetime | None = None


@dataclass(frozen=True)
class ContextChange:
    """Items to delete and items to insert; a corrected item is in both."""

    conversation_id: int
    removed: tuple[ItemRow, ...] = ()
    added: tuple[ItemRow, ...] = ()

    @property
    def is_needed(self) -> bool:
        return bool(self.removed or self.added)

    @property
    def conversation_ids(self) -> tuple[int, ...]:
        """The conversations whose context changes."""
        return tuple(sorted({self.conversation_id, *(row.conversation_id for row in self.removed)}))

    def reversed(self) -> ContextChange:
        """Return the change that undoes this one, restoring the same rows."""
        return ContextChange(self.conversation_id, removed=self.added, added=self.removed)


@dataclass(frozen=True)
class Counts:
    """The counters in a conversation's row."""

    next_seq: int
    total_tokens: int
    active_messages: int
    active_tokens: int
    chain_head: str
    cold_messages: int
    quarantined: int
    moves: int = 0
    inactive: str = "{}"
    journal_size: int = 0


@dataclass(frozen=True)
class CountsChange:
    """A conversation's stored counters, and the recomputed ones."""

    conversation_id: int
    before: Counts
    after: Counts

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def reversed(self) -> CountsChange:
        """Return the change that undoes this one."""
        return CountsChange(self.conversation_id, before=self.after, after=self.before)


def context_difference(conversation_id: int, *, cost_of: CostOf) -> ContextChange:
    """Compare the stored context with the one derived from the lineage.

    The derived context has these items of the path to the head: each summary that is neither a source nor superseded,
    and each message without a summary. The ordinal of a summary is its first seq; `cost_of` computes its tokens. Raises
    Conflict if the lineage puts two items at one ordinal.
    """
    found = rows(_SQL["derived"] + _SQL["differences"], _values(conversation_id, cost_of))
    added = tuple(_row(columns) for is_derived, *columns in found if is_derived)
    places = [row.ordinal for row in added]
    if len(places) != len(set(places)):
        twice = next(place for place in places if places.count(place) > 1)
        raise Conflict(
            f"The lineage of conversation {conversation_id} has two items at {twice}, so no context can be derived "
            "from it: run `lcm check`.",
            code="lineage_contradicts_itself",
        )
    return ContextChange(
        conversation_id=conversation_id,
        removed=tuple(_row(columns) for is_derived, *columns in found if not is_derived),
        added=added,
    )


def fill_context(conversation_id: int, *, cost_of: CostOf) -> None:
    """Write the context of a conversation that has none yet."""
    execute(_SQL["derived"] + "\n" + _SQL["fill"], _values(conversation_id, cost_of))


def _values(conversation_id: int, cost_of: CostOf) -> dict[str, Any]:
    """Return the parameters of `derived`: the context's summaries and their costs."""
    path = active_path(conversation_id)
    shown = Summary.objects.filter(conversation_id=conversation_id, superseded_by__isnull=True)
    if path.usable_summaries is None:
        shown = shown.filter(derived_links__isnull=True)
    else:
        derived = SummaryParent.objects.filter(summary_id__in=path.usable_summaries, source_id=OuterRef("pk"))
        shown = shown.filter(~Exists(derived), pk__in=path.usable_summaries)
    costs = {each.summary_id: cost_of(each.as_record()) for each in shown.readable().iterator(chunk_size=100)}
    return {
        "id": conversation_id,
        "summary_ids": list(costs),
        "costs": list(costs.values()),
        "overhead": MESSAGE_OVERHEAD_TOKENS,
        **path.values,
    }


def change_context(change: ContextChange) -> None:
    """Delete and insert the rows of a change; Conflict if a row has changed.

    The counters are not updated: call `recount` for each of the change's `conversation_ids`.
    """
    for row in change.removed:
        at = ContextItem.objects.filter(conversation_id=row.conversation_id, ordinal=row.ordinal)
        shown = Q(message_id=row.message_id, summary_id=row.summary_id, token_count=row.token_count)
        gone, _ = at.filter(shown).delete()
        if not gone:
            raise Conflict(f"The context of conversation {row.conversation_id} was changed at {row.ordinal}: retry.")
    made = [
        ContextItem(**{name: value for name, value in vars(row).items() if value is not None}) for row in change.added
    ]
    ContextItem.objects.bulk_create(made, batch_size=1_000)


def rebuild_context(conversation_id: int, *, cost_of: CostOf) -> ContextChange:
    """Replace the stored context with the derived one, and return the change.

    Also removes the conversation's messages and summaries from contexts of other conversations. Writes nothing if
    nothing differs. The counters are not updated: call `recount`.
    """
    lock_conversations([conversation_id])
    change = context_difference(conversation_id, cost_of=cost_of)
    if change.is_needed:
        if change.conversation_ids != (conversation_id,):
            lock_conversations(change.conversation_ids)
        change_context(change)
    return change


def count_anew(conversation_id: int) -> CountsChange:
    """Recompute the counters and compare them with the stored ones; writes nothing.

    If the newest messages are missing, or the hash of the last one does not follow from the one before it, the stored
    `next_seq` or `chain_head` is the only evidence of the damage, and is kept. `next_seq` is never lowered.
    """
    stored = rows(_SQL["counters"], {"id": conversation_id})
    if not stored:
        raise NotFound(f"There is no conversation {conversation_id} that you may see.")
    counted = rows(_SQL["recounted"], {"id": conversation_id})
    return CountsChange(conversation_id, before=Counts(*stored[0]), after=Counts(*counted[0]))


def change_counts(change: CountsChange) -> None:
    """Set the counters to `after`; Conflict unless they are equal to `before`."""
    conversation = lock_conversations([change.conversation_id])[0]
    if rows(_SQL["counters"], {"id": change.conversation_id}) != [tuple(vars(change.before).values())]:
        raise Conflict(f"The counters of conversation {change.conversation_id} were changed meanwhile; try again.")
    values = {**vars(change.after), "chain_head": bytes.fromhex(change.after.chain_head)}
    Conversation.objects.filter(pk=conversation.pk).update(**values)


def recount(conversation_id: int) -> CountsChange:
    """Set a conversation's counters to the recomputed ones; return the change."""
    lock_conversations([conversation_id])
    change = count_anew(conversation_id)
    if change.is_needed:
        change_counts(change)
    return change


def misfit_ranges(conversation_id: int) -> tuple[str, ...]:
    """Return the ids of summaries whose range of seqs differs from their sources'.

    A derived context would have such a summary at the wrong position.
    """
    return tuple(summary_id for (summary_id,) in rows(_SQL["misfit_ranges"], {"id": conversation_id}))


def lock_conversations(conversation_ids: Iterable[int]) -> list[Conversation]:
    """Lock the rows of these conversations; NotFound if one does not exist.

    The rows are locked in the order of their ids, so that concurrent callers cannot deadlock.
    """
    wanted = sorted(conversation_ids)
    held = list(Conversation.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk"))
    if len(held) < len(wanted):
        missing = min(set(wanted) - {each.pk for each in held})
        raise NotFound(f"There is no conversation {missing} that you may see.")
    return held


def _row(columns: Sequence[Any]) -> ItemRow:
    conversation_id, ordinal, item_type, *rest = columns
    return ItemRow(conversation_id, ordinal, ContextItemType(item_type), *rest)
