"""What integrity counts: each place where a report found an invariant broken."""

from __future__ import annotations

from collections.abc import Mapping

from conversations.metering import Meter
from integrity.invariants import INVARIANTS

FAILURES = Meter(
    "lcm_integrity_failures_total",
    "Findings of finished reports, by invariant; one that stays counts in each report that finds it.",
    labels=("code",),
    known=tuple((invariant.code,) for invariant in INVARIANTS),
)


def reported(counts: Mapping[str, int]) -> None:
    """Count what a finished report has found."""
    for code, count in counts.items():
        if count:
            FAILURES.add(count, code)
