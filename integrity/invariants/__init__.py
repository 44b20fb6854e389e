"""All invariants, in the order in which reports list them."""

from integrity.invariants import (  # noqa: F401, I001 (importing registers them)
    history_invariants, hash_invariants, file_invariants, cold_invariants, audit_invariants, map_invariants,
    figure_invariants, session_invariants,
)  # fmt: skip
from integrity.invariants.invariant import INVARIANTS, MOST_FINDINGS, MOST_KEPT, Found, Invariant

__all__ = ["INVARIANTS", "MOST_FINDINGS", "MOST_KEPT", "Found", "Invariant"]
