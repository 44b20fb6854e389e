"""Every promise that can be checked again from the rows, in the order of the report."""

from integrity.invariants import (  # noqa: F401, I001 (importing registers them)
    message_invariants, context_invariants, lineage_invariants, hash_invariants, part_invariants, record_invariants,
    file_invariants, trust_invariants, emptied_invariants, seal_invariants, removal_invariants, audit_invariants,
    counter_invariants, token_invariants, run_invariants, leftover_invariants,
)  # fmt: skip
from integrity.invariants.invariant import INVARIANTS, MOST_FINDINGS, MOST_KEPT, Found, Invariant

__all__ = ["INVARIANTS", "MOST_FINDINGS", "MOST_KEPT", "Found", "Invariant"]
