"""Explain why each item is in an assembled context or not. Pure.

A receipt has few lines, however long the context is.
"""

from __future__ import annotations

from collections.abc import Iterable

from compaction.planning.planner import sum_tokens
from conversations.fast.records import record
from conversations.types import ContextItemType
from retrieval.assembly.selection import Candidate, Decision, Selection
from retrieval.assembly.types import (
    AssemblyReason,
    ChangedCost,
    KeptReceipt,
    LeftOut,
    ReceiptDifference,
    ReceiptLine,
    WentOut,
)

# So many of the newest items that did not fit have a line of their own.
LINES_LEFT_OUT = 100


def left_out(selection: Selection, whole: LeftOut) -> LeftOut:
    """What a selection leaves out of a context that is so much as a whole."""
    return _less(whole, [decision.candidate for decision in selection.taken])


def receipt(selection: Selection, missing: LeftOut, *, begins: int, edge: int | None) -> tuple[ReceiptLine, ...]:
    """Every decision in the order it was made; what is missing and has no line of its own shares the last one.

    `begins` is the seq where the context begins, `edge` the one before which nothing was looked at, if there is such.
    """
    # What only the query brought up is no part of the context, and so of no later sum.
    recalled = [decision for decision in selection.refused if decision.candidate.is_recalled]
    items = [decision for decision in selection.refused if not decision.candidate.is_recalled]
    named, unnamed = items[:LINES_LEFT_OUT], items[LINES_LEFT_OUT:]
    rest = _less(missing, [decision.candidate for decision in named])
    lines = [*_lines(selection.taken, included=True), *_lines([*recalled, *named], included=False)]
    if rest.messages or rest.summaries:
        last_seqs = [decision.candidate.last_seq for decision in unnamed] + ([] if edge is None else [edge - 1])
        lines.append(
            ReceiptLine(
                included=False,
                reason=AssemblyReason.BUDGET,
                tokens=rest.tokens,
                running_total=selection.total_tokens,
                first_seq=begins,
                last_seq=max(last_seqs, default=begins),
                messages=rest.messages,
                summaries=rest.summaries,
            )
        )
    return tuple(lines)


def _less(whole: LeftOut, candidates: Iterable[Candidate]) -> LeftOut:
    items = [candidate for candidate in candidates if not candidate.is_recalled]
    raw = sum([candidate.message_id is not None for candidate in items])
    return LeftOut(
        messages=whole.messages - raw,
        summaries=whole.summaries - (len(items) - raw),
        tokens=whole.tokens - sum_tokens(items),
    )


def _lines(decisions: Iterable[Decision], *, included: bool) -> list[ReceiptLine]:
    lines = []
    for candidate, reason, running_total in decisions:
        ordinal, tokens, message_id, summary_id, _, _, _, last_seq, _ = candidate
        if message_id is None:
            id, kind, messages, summaries = summary_id, ContextItemType.SUMMARY, 0, 1
        else:
            id, kind, messages, summaries = f"msg_{message_id}", ContextItemType.MESSAGE, 1, 0
        values = {
            "included": included,
            "reason": reason,
            "tokens": tokens,
            "running_total": running_total,
            "first_seq": ordinal,
            "last_seq": last_seq,
            "id": id,
            "kind": kind,
            "messages": messages,
            "summaries": summaries,
        }
        lines.append(record(ReceiptLine, values))
    return lines


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
