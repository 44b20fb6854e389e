"""What remembering times."""

from __future__ import annotations

from conversations.metering import MILLISECONDS, Meter

SEARCH_LATENCY = Meter("lcm_search_latency_ms", "How long a search took, in milliseconds.", buckets=MILLISECONDS)
EXPAND_LATENCY = Meter(
    "lcm_expand_latency_ms", "How long a page of an expansion took, in milliseconds.", buckets=MILLISECONDS
)
