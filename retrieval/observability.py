"""Histograms of retrieval, in milliseconds."""

from __future__ import annotations

from prometheus_client import Histogram

from conversations.metering import MILLISECONDS

SEARCH_LATENCY = Histogram("lcm_search_latency_ms", "How long a search took, in milliseconds.", buckets=MILLISECONDS)
EXPAND_LATENCY = Histogram(
    "lcm_expand_latency_ms", "How long a page of an expansion took, in milliseconds.", buckets=MILLISECONDS
)
