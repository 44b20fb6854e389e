"""The record of map runs is complete, and says what the rows say.

The record of a run is a hash chain of its own. It names every completed item with the hashes of its input and output,
so whoever changes an item would have to change the chain as well. What the chain itself cannot show is that its newest
events were removed: a completed item without an event does, and an export of the record that was kept elsewhere.

All of them are checked with the workspace and not with a conversation, as a run may have none.
"""

from __future__ import annotations

from integrity.invariants.invariant import in_sql
from integrity.types import Severity

FILE = "integrity/map_invariants.sql"

in_sql(
    FILE,
    Severity.CRITICAL,
    {
        "map_events_are_chained": "No event of a map run was altered, removed or inserted.",
        "map_items_match_their_hashes": "Inputs, outputs and prompts of map runs match their hashes.",
        "map_completions_are_recorded_once": "Each completed item has one event in the record, with the same hashes.",
    },
    of_the_site=True,
)
in_sql(
    FILE,
    Severity.ERROR,
    {"map_counts_add_up": "Each map run has all of its items, and ends when these have."},
    of_the_site=True,
)
