"""Every promise that can be checked again from the rows, in the order of the report."""

from integrity.invariants import (  # noqa: F401, I001 (they register theirs)
    messages, context, lineage, hashes, parts, records, files, trust, emptied, seals, removals, acts, counters, tokens,
    runs, leftovers,
)  # fmt: skip
from integrity.invariants.base import INVARIANTS, MOST_FINDINGS, MOST_KEPT, Found, Invariant

__all__ = ["INVARIANTS", "MOST_FINDINGS", "MOST_KEPT", "Found", "Invariant"]
