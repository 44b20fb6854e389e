"""What came into a context and what went out of it, from two receipts of one conversation. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from conversations.types import ContextItemType
from retrieval.assembly.types import ChangedCost, KeptReceipt, ReceiptDifference, ReceiptLine, WentOut


def difference(before: KeptReceipt, after: KeptReceipt) -> ReceiptDifference:
    """From the one to the other, in the order of the conversation."""
    old, new = _included(before.lines), _included(after.lines)
    both = [item_id for item_id in old if item_id in new]
    changed = [
        ChangedCost(
            id=item_id,
            first_seq=new[item_id].first_seq,
            last_seq=new[item_id].last_seq,
            tokens_before=old[item_id].tokens,
            tokens_after=new[item_id].tokens,
        )
        for item_id in both
        if old[item_id].tokens != new[item_id].tokens
    ]
    came_in = tuple(line for item_id, line in new.items() if item_id not in old)
    summaries = [line for line in came_in if line.kind is ContextItemType.SUMMARY]
    went_out = (line for item_id, line in old.items() if item_id not in new)
    return ReceiptDifference(
        receipt_id=before.receipt_id,
        other=after.receipt_id,
        conversation_id=before.conversation_id,
        tokens_before=before.total_tokens,
        tokens_after=after.total_tokens,
        unchanged=len(both) - len(changed),
        came_in=came_in,
        went_out=tuple(WentOut(line=line, replaced_by=_standing_for(line, summaries)) for line in went_out),
        changed_cost=tuple(changed),
    )


def _included(lines: Iterable[ReceiptLine]) -> dict[str, ReceiptLine]:
    shown = (line for line in lines if line.included and line.id is not None)
    return {line.id or "": line for line in sorted(shown, key=lambda line: (line.first_seq, line.last_seq, line.id))}


def _standing_for(line: ReceiptLine, summaries: Iterable[ReceiptLine]) -> str | None:
    """The new summary whose range holds this one: summaries of one context do not overlap."""
    return next(
        (each.id for each in summaries if each.first_seq <= line.first_seq and line.last_seq <= each.last_seq), None
    )
