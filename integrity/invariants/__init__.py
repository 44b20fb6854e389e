"""Every promise that can be checked again from the rows, in the order of the report."""

from integrity.invariants import messages, context, lineage, hashes, counters  # noqa: F401, I001 (they register theirs)
from integrity.invariants.base import INVARIANTS, MOST_FINDINGS, Found, Invariant

__all__ = ["INVARIANTS", "MOST_FINDINGS", "Found", "Invariant"]
