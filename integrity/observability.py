"""Metrics of integrity."""

from __future__ import annotations

from collections.abc import Mapping

from conversations.metering import Meter
from integrity.invariants import INVARIANTS

FAILURES = Meter(
    "lcm_integrity_failures_total",
    "Findings of finished reports, by invariant; a finding counts in each report that lists it.",
    labels=("code",),
    known=tuple((invariant.code,) for invariant in INVARIANTS),
)


def reported(counts: Mapping[str, int]) -> None:
    """Count the findings of a finished report."""
    for code, count in counts.items():
        if count:
            FAILURES.add(count, code)
