"""What PostgreSQL has counted of the words in all messages, and is asked for once: it counts anew only now and then.

To be told takes longer than to find out what a question means, as it is two arrays of a thousand, written out and read
again. So a process keeps them until the server says that it has counted again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from conversations.sql import rows

# Nobody is to rely on the server's word for longer: whoever restores statistics from elsewhere does not count.
KEPT_SECONDS = 300
# The moment is told as soon as the words are counted, by whoever has yet to commit that: so it has to be a while ago.
SETTLED_SECONDS = 10

COUNTED = """
    counted AS MATERIALIZED (
        SELECT reltuples::float8 AS messages,
               greatest(pg_stat_get_last_analyze_time(oid), pg_stat_get_last_autoanalyze_time(oid)) AS at
        FROM pg_class WHERE oid = to_regclass('messages')
    )
"""
_COUNTS = """
    SELECT json_build_array(most_common_elems::text::text[], most_common_elem_freqs)::text
    FROM pg_stats
    WHERE schemaname = ANY(current_schemas(false)) AND tablename = 'messages' AND attname = 'content_tsv'
      AND most_common_elems IS NOT NULL
    LIMIT 1
"""
# How many messages there are and when the words were counted; whether what is told of them is what everybody is told
# from here on, which a transaction that has written cannot know.
TOLD = (
    "SELECT messages FROM counted",
    "SELECT at FROM counted",
    """
    SELECT at < now() - make_interval(secs => %(settled_seconds)s) AND pg_current_xact_id_if_assigned() IS NULL
    FROM counted
    """,
)
# The same to whoever knows no counts. To whoever does, these are not even to be named: to begin a statement that could
# tell them takes a sixth of its time.
TOLD_WITH_COUNTS = (*TOLD, _COUNTS)


@dataclass(frozen=True)
class Statistics:
    """About how many messages there are, and which share of them holds a lexeme.

    Only lexemes that are common enough to be counted are told. Before anything was counted, `messages` is below 0.
    """

    messages: float = -1
    frequencies: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """The counts of a moment, and since when they are kept."""

    at: datetime
    frequencies: Mapping[str, float]
    since: float

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() < self.since + KEPT_SECONDS


# By database, of which a process has one.
_KEPT: dict[str, Known] = {}


def known() -> Known | None:
    """What this process was told last, if it is not too long ago."""
    kept = _KEPT.get(database())
    return kept if kept is not None and kept.is_fresh else None


def values() -> dict[str, Any]:
    """The values for `TOLD`."""
    return {"settled_seconds": SETTLED_SECONDS}


def told(row: Sequence[Any], before: Known | None) -> Statistics:
    """The statistics by what `TOLD` gave, or, where none were known before, `TOLD_WITH_COUNTS`."""
    messages, at, is_lasting, *with_counts = row
    if before is not None and before.at == at:
        return Statistics(messages, before.frequencies)
    [counts] = with_counts or rows(f"SELECT ({_COUNTS})")[0]
    frequencies = dict(zip(*json.loads(counts), strict=False)) if counts else {}
    if is_lasting:
        _KEPT[database()] = Known(at, frequencies, time.monotonic())
    return Statistics(messages, frequencies)


def database() -> str:
    return str(connections[DEFAULT_DB_ALIAS].settings_dict["NAME"])
