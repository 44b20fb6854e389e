"""Keep the newest receipts of each conversation, and read them back.

The id of a receipt is a hash of it: the same context, assembled again in the same way, has the same receipt, kept once.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, astuple, fields, replace

from django.db.models import QuerySet
from pydantic import TypeAdapter

from conversations.errors import NotFound
from conversations.scope import Scope
from conversations.sql import load, rows
from conversations.store.pages import behind
from retrieval.assembly.types import AssembledContext, KeptReceipt, Moment, ReceiptLine, ReceiptOutline
from retrieval.models import AssemblyReceipt

# More make way only where a setting was lowered, and then a few with each one that is kept.
_AT_ONCE = 20
_SQL = load("retrieval/receipts.sql")
_LINE = tuple(each.name for each in fields(ReceiptLine))
_RECEIPT = TypeAdapter(KeptReceipt)
_MOMENT: TypeAdapter[Moment | None] = TypeAdapter(Moment | None)


def keep(context: AssembledContext, *, last_seq: int, most: int) -> AssembledContext:
    """The context with the id of its receipt, which is kept now, and of those that made way for it."""
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


def kept(receipt_id: str, *, scope: Scope) -> KeptReceipt:
    """The receipt of this id; NotFound alike for what is not there and what the caller may not see."""
    row = _found(scope.narrow(AssemblyReceipt.objects.all()), receipt_id)
    lines = [dict(zip(_LINE, values, strict=True)) for values in row.lines]
    stored = {"receipt_id": row.receipt_id, "conversation_id": row.conversation_id, "created_at": row.created_at}
    return _RECEIPT.validate_python({**row.figures, **stored, "lines": lines})


def listed(conversation_id: int, *, before_receipt: str | None, limit: int) -> list[ReceiptOutline]:
    """The kept receipts of a conversation, newest first, without their decisions."""
    rows = AssemblyReceipt.objects.filter(conversation_id=conversation_id).order_by("-created_at", "-receipt_id")
    if before_receipt is not None:
        last = _found(rows, before_receipt)
        rows = rows.filter(behind(field="created_at", moment=last.created_at, key=last.receipt_id))
    return [
        ReceiptOutline(
            receipt_id=row.receipt_id,
            conversation_id=row.conversation_id,
            created_at=row.created_at,
            last_seq=row.figures["last_seq"],
            budget=row.figures["budget"],
            total_tokens=row.figures["total_tokens"],
            over_budget=row.figures["over_budget"],
            is_for_query=row.figures["query_hash"] is not None,
            as_of=_MOMENT.validate_python(row.figures["as_of"]),
        )
        for row in rows.defer("lines")[:limit]
    ]


def _found(receipts: QuerySet[AssemblyReceipt], receipt_id: str) -> AssemblyReceipt:
    row = receipts.filter(receipt_id=receipt_id).first() if receipt_id.isprintable() else None
    if row is None:
        raise NotFound(
            f"There is no receipt {receipt_id[:80]!r} that you may see; of each conversation, only the newest are kept."
        )
    return row


def _hash(query: str | None) -> str | None:
    # What was asked may be somebody's words, too; that it was the same can be seen all the same.
    return None if query is None else hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()
