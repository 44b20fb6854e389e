"""Summaries without their text, as they are shown wherever one has to decide what to open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from conversations.fast.records import record
from conversations.types import Level, SummaryKind
from retrieval.types import SummaryOutline

_KINDS = {kind.value: kind for kind in SummaryKind}
_LEVELS = {level.value: level for level in Level}

# Times come as text: the driver, as Django has set it up, takes ten times as long over them.
# To open a summary is to read the texts of its sources. What a leaf stands for are its sources; of a condensed one, the
# messages that are sources themselves are what it stands for beyond what its source summaries do.
# Of a summary `s`; behind it stands how far it is from what was asked about. What EXISTS would ask is asked with a
# limit, as the planner may answer EXISTS by reading the links of all conversations.
OUTLINE = """
    SELECT s.summary_id, s.kind::text, s.depth, s.token_count,
           CASE WHEN s.kind = 'leaf' THEN s.source_tokens ELSE s.source_tokens + coalesce((
               SELECT sum(c.token_count - c.source_tokens)
               FROM summary_parents p JOIN summaries c ON c.summary_id = p.parent_summary_id
               WHERE p.summary_id = s.summary_id
           ), 0) END::bigint,
           s.first_seq, s.last_seq, s.earliest_at::text, s.latest_at::text, s.descendant_count, s.level,
           (SELECT true FROM summary_parents p WHERE p.parent_summary_id = s.summary_id LIMIT 1) IS NOT NULL,
           (SELECT later.summary_id FROM summaries later WHERE later.supersedes_id = s.summary_id)
"""


def outline(row: Sequence[Any]) -> SummaryOutline:
    """The outline in such a row."""
    (
        summary_id, kind, depth, tokens, opening, first, last, earliest, latest, messages, level, has_derived, later,
        distance,
    ) = row  # fmt: skip
    values = {
        "summary_id": summary_id,
        "kind": _KINDS[kind],
        "depth": depth,
        "token_count": tokens,
        "opening_tokens": opening,
        "first_seq": first,
        "last_seq": last,
        "earliest_at": datetime.fromisoformat(earliest),
        "latest_at": datetime.fromisoformat(latest),
        "descendant_count": messages,
        "level": _LEVELS[level],
        "active": not has_derived and later is None,
        "distance": distance,
        "superseded_by": later,
    }
    return record(SummaryOutline, values)


def in_order(outlines: Iterable[SummaryOutline]) -> list[SummaryOutline]:
    """By where they begin, the widest first; of one that lies at several distances, the nearest."""
    nearest: dict[str, SummaryOutline] = {}
    for each in sorted(outlines, key=lambda each: abs(each.distance)):
        nearest.setdefault(each.summary_id, each)
    return sorted(nearest.values(), key=lambda each: (each.first_seq, -each.depth, each.summary_id))


def way_up(outlines: Iterable[SummaryOutline]) -> list[SummaryOutline]:
    """The nearest first."""
    return sorted(in_order(outlines), key=lambda each: -each.distance)
