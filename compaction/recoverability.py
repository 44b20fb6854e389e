"""Whether everything that was archived can be recovered."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.types import Coverage, CoverageGap, GapKind
from conversations import sql

# A report lists so many gaps; all of them are counted.
MOST_GAPS = 100

_STATEMENTS = sql.load("compaction/recoverability.sql")


def coverage(
    conversation_id: int, *, last_seq: int, host_reference: str | None, idempotency_keys: Sequence[str]
) -> Coverage:
    """See `HostCompaction.verify_coverage`: two statements, whatever the size."""
    values = {"conversation_id": conversation_id, "last_seq": last_seq, "most": MOST_GAPS}
    found = sql.rows(_STATEMENTS["coverage"], values)
    stored, summarized, raw, unreachable, gaps = found[0][:5]
    listed = tuple(
        CoverageGap(first_seq=row[5], last_seq=row[6], kind=GapKind(row[7])) for row in found if row[5] is not None
    )
    missing_keys = tuple(
        key for (key,) in sql.rows(_STATEMENTS["missing_keys"], [list(idempotency_keys), conversation_id])
    )
    return Coverage(
        conversation_id=conversation_id,
        host_reference=host_reference,
        last_seq=last_seq,
        stored=stored,
        summarized=summarized,
        raw=raw,
        missing=last_seq - stored,
        unreachable=unreachable,
        is_complete=stored == last_seq and not unreachable and not missing_keys,
        gaps=listed,
        gaps_left_out=gaps - len(listed),
        missing_keys=missing_keys,
    )
