"""Metrics of integrity."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import Counter

from integrity.invariants import INVARIANTS

FAILURES = Counter(
    "lcm_integrity_failures_total",
    "Findings of finished reports, by invariant; a finding counts in each report that lists it.",
    ["code"],
)
for _invariant in INVARIANTS:
    FAILURES.labels(_invariant.code)


def reported(counts: Mapping[str, int]) -> None:
    """Count the findings of a finished report."""
    for code, count in counts.items():
        FAILURES.labels(code).inc(count)
