"""What deriving a conversation's context and counters anew has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conversations.store.context import ContextChange, CountsChange, ItemRow

MOST_TOLD = 100


@dataclass(frozen=True)
class CounterChange:
    """One counter that was not what counting gives."""

    conversation_id: int
    name: str
    before: int | str
    after: int | str


@dataclass(frozen=True)
class ItemChange:
    """One item that was taken out of the context, or put into it."""

    change: str
    conversation_id: int
    ordinal: int
    id: str
    token_count: int


@dataclass(frozen=True)
class Rebuilt:
    """All changes are counted, and the first of the items told."""

    conversation_id: int
    is_changed: bool
    items_removed: int
    items_added: int
    items: tuple[ItemChange, ...] = ()
    counters: tuple[CounterChange, ...] = ()
    # Summaries whose range is not that of their sources: only a ledger or a backup puts them right.
    misfit_summaries: tuple[str, ...] = ()

    @classmethod
    def of(cls, context: ContextChange, counts: Sequence[CountsChange], *, misfits: tuple[str, ...]) -> Rebuilt:
        told = [("removed", row) for row in context.removed[:MOST_TOLD]]
        told += [("added", row) for row in context.added[:MOST_TOLD]]
        return cls(
            conversation_id=context.conversation_id,
            is_changed=context.is_needed or any(change.is_needed for change in counts),
            items_removed=len(context.removed),
            items_added=len(context.added),
            items=tuple(_item(change, row) for change, row in told),
            counters=tuple(
                CounterChange(change.conversation_id, name, before, vars(change.after)[name])
                for change in counts
                for name, before in vars(change.before).items()
                if before != vars(change.after)[name]
            ),
            misfit_summaries=misfits,
        )

    def counters_as_json(self) -> list[dict[str, Any]]:
        return [vars(counter) for counter in self.counters]


def _item(change: str, row: ItemRow) -> ItemChange:
    shown = row.summary_id if row.message_id is None else f"msg_{row.message_id}"
    return ItemChange(change, row.conversation_id, row.ordinal, shown or "", row.token_count)
