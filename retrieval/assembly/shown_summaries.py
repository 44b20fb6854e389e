"""Summaries as far as a model gets to see them, and nothing else of them: a context may hold some hundred."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from conversations.sql import load, rows

_SUMMARIES = load("retrieval/assembly.sql")["shown_summaries"]
# As in `conversations.store.read`: it does not look for white space, which the database writes none of around a value.
_decode = json.JSONDecoder().raw_decode


class ShownSummary(NamedTuple):
    summary_id: str
    content: str
    erased_by_id: int | None
    kind: str
    depth: int
    first_seq: int
    last_seq: int
    earliest_at: datetime
    latest_at: datetime


def shown_summary(summary_id: str, content: str, figures: str) -> ShownSummary:
    """The summary of these columns, the last of them its figures."""
    (*told, earliest, latest), _ = _decode(figures)
    return ShownSummary._make((summary_id, content, *told, _time(earliest), _time(latest)))


def read_summaries(summary_ids: Sequence[str]) -> dict[str, ShownSummary]:
    """These summaries by id."""
    return {row[0]: shown_summary(*row) for row in rows(_SUMMARIES, [ids(summary_ids)])}


def ids(summary_ids: Sequence[str]) -> str:
    """As one text: the driver would take longer over a list of them than the server over the summaries."""
    return "{" + ",".join(summary_ids) + "}"


_time = datetime.fromisoformat
