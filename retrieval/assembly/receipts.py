"""Says of everything why it is in an assembled context or not, in few lines however long the context is. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.planning.planner import sum_tokens
from conversations.fast.records import record
from conversations.types import ContextItemType
from retrieval.assembly.candidates import Candidate, Decision, Selection
from retrieval.assembly.types import AssemblyReason, LeftOut, ReceiptLine

# So many of the newest items that did not fit have a line of their own.
LINES_LEFT_OUT = 100
# Looked up once, and not for each line.
_MESSAGE, _SUMMARY = ContextItemType.MESSAGE, ContextItemType.SUMMARY


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
        id, kind, messages, summaries = (
            (summary_id, _SUMMARY, 0, 1) if message_id is None else (f"msg_{message_id}", _MESSAGE, 1, 0)
        )
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
