"""Invariants of map runs: the record of events is complete and matches the rows.

The events of each run form a separate hash chain. The event of a completed item has the hashes of its input and output,
so an altered item contradicts its event. The chain alone does not reveal that its newest events were removed. A
completed item without an event reveals it, and so does an earlier export of the record.

Map runs are checked with their workspace, not with a conversation, because a run may belong to no conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from conversations.content.hashing import json_hash
from conversations.sql import load
from integrity.invariants.invariant import in_sql, invariant, stream_rows
from integrity.types import Finding, Severity

FILE = "integrity/map_invariants.sql"
SQL = load(FILE)

in_sql(
    FILE,
    Severity.CRITICAL,
    {
        "map_events_are_chained": "No event of a map run was altered, removed or inserted.",
        "map_items_match_their_hashes": "Inputs, outputs and prompts of map runs match their hashes.",
        "map_completions_are_recorded_once": "Each completed item has one event in the record, with the same hashes.",
        "map_runs_are_as_submitted": "Each map run has the request and the terms of delegation that were recorded.",
    },
    of_the_site=True,
)
in_sql(
    FILE,
    Severity.ERROR,
    {
        "map_counts_add_up": "Each map run has all of its items, and ends when these have.",
        "map_states_follow_their_record": "Each map run and each failed item is where its last event left it.",
    },
    of_the_site=True,
)


@invariant(Severity.CRITICAL, of_the_site=True)
def map_schemas_match_their_hashes(workspace_id: int | None) -> Iterator[Finding]:
    """The output schema of each map run matches its hash."""
    for run_id, schema, recorded in stream_rows(SQL["map_schemas"], (), workspace_id=workspace_id):
        try:
            is_same = json_hash(json.loads(schema)) == bytes(recorded)
        except ValueError:
            is_same = False
        if not is_same:
            yield Finding(None, run_id, "the schema does not match its hash")
