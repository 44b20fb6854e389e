"""Store the newest receipts of each conversation, read them, and compare them.

The id of a receipt is a hash of its content. So the same context, assembled again in the same way, has the same id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, astuple, fields, replace
from functools import partial
from typing import Any

from django.db.models import QuerySet
from pydantic import TypeAdapter

from conversations.errors import Invalid, NotFound
from conversations.scope import Scoped
from conversations.sql import load, rows
from conversations.store.pages import newest_first
from conversations.types import ContextItemType
from retrieval.assembly.types import (
    AssembledContext,
    ChangedCost,
    KeptReceipt,
    ReceiptDifference,
    ReceiptLine,
    ReceiptOutline,
    WentOut,
)
from retrieval.models import AssemblyReceipt

# A new receipt deletes at most this many old ones. More than one is deleted only after the setting was lowered.
_AT_ONCE = 20
_SQL = load("retrieval/receipts.sql")
_LINE = tuple(each.name for each in fields(ReceiptLine))
_RECEIPT, _OUTLINE = TypeAdapter(KeptReceipt), TypeAdapter(ReceiptOutline)


def keep(context: AssembledContext, *, last_seq: int, most: int) -> AssembledContext:
    """Store the receipt; return the context with its id and the ids that it deleted."""
    moment = context.as_of
    figures = {
        "last_seq": last_seq,
        "budget": context.budget,
        "budget_source": context.budget_source.value,
        "reserve": context.reserve,
        "total_tokens": context.total_tokens,
        "over_budget": context.over_budget,
        "left_out": asdict(context.left_out),
        "query_hash": _hash(context.query),
        "as_of": moment and {**asdict(moment), "time": moment.time and moment.time.isoformat()},
    }
    lines = [astuple(line) for line in context.receipt]
    identity = json.dumps([context.conversation_id, figures, lines], sort_keys=True)
    receipt_id = f"rcp_{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    gone = rows(
        _SQL["keep"],
        {
            "receipt": receipt_id,
            "conversation": context.conversation_id,
            "figures": json.dumps(figures),
            "lines": json.dumps(lines),
            "others": most - 1,
            "at_once": _AT_ONCE,
        },
    )
    return replace(context, receipt_id=receipt_id, receipts_gone=tuple(sorted(gone_id for (gone_id,) in gone)))


class Receipts(Scoped):
    """Reads and compares the kept receipts."""

    def list_receipts(
        self, *, conversation_id: int, before_receipt: str | None = None, limit: int = 20
    ) -> list[ReceiptOutline]:
        """List the kept receipts of a conversation, newest first. Raises NotFound."""
        kept = AssemblyReceipt.objects.filter(conversation_id=self.scope.conversation(conversation_id).pk)
        newest = newest_first(kept.defer("lines"), before_receipt, partial(_found, kept))
        return [_OUTLINE.validate_python(_values(row)) for row in newest[:limit]]

    def get_receipt(self, *, receipt_id: str) -> KeptReceipt:
        """Get a kept receipt: what was in the context, what was not, and why."""
        row = _found(self.scope.narrow(AssemblyReceipt.objects.all()), receipt_id)
        # Receipts from older versions of LCM do not have the last fields.
        lines = [dict(zip(_LINE, values, strict=False)) for values in row.lines]
        return _RECEIPT.validate_python({**_values(row), "lines": lines})

    def compare_receipts(self, *, receipt_id: str, other: str) -> ReceiptDifference:
        """Compare two receipts: items added, items removed, changed token costs.

        Raises NotFound; Invalid if they belong to different conversations.
        """
        before, after = self.get_receipt(receipt_id=receipt_id), self.get_receipt(receipt_id=other)
        if before.conversation_id != after.conversation_id:
            raise Invalid(
                f"other: {other} is of conversation {after.conversation_id}, but {receipt_id} of "
                f"{before.conversation_id}. Compare two receipts of one conversation."
            )
        return _difference(before, after)


def _values(row: AssemblyReceipt) -> dict[str, Any]:
    """The fields of a receipt, except its lines."""
    return {
        **row.figures,
        "receipt_id": row.receipt_id,
        "conversation_id": row.conversation_id,
        "created_at": row.created_at,
        "is_for_query": row.figures["query_hash"] is not None,
    }


def _found(receipts: QuerySet[AssemblyReceipt], receipt_id: str) -> AssemblyReceipt:
    row = receipts.filter(receipt_id=receipt_id).first() if receipt_id.isprintable() else None
    if row is None:
        raise NotFound(
            f"There is no receipt {receipt_id[:80]!r} that you may see; only a conversation's newest receipts are kept."
        )
    return row


def _hash(query: str | None) -> str | None:
    # The query itself is not stored, because it may be private. Two equal queries have the same hash.
    return None if query is None else hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()


def _difference(before: KeptReceipt, after: KeptReceipt) -> ReceiptDifference:
    """Compare two receipts; items are listed in the order of the conversation."""
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
    """The id of the new summary that contains this item; summaries do not overlap."""
    return next(
        (each.id for each in summaries if each.first_seq <= line.first_seq and line.last_seq <= each.last_seq), None
    )
