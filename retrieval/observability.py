"""Histograms of retrieval, in milliseconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Histogram

MILLISECONDS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0)

SEARCH_LATENCY = Histogram("lcm_search_latency_ms", "How long a search took, in milliseconds.", buckets=MILLISECONDS)
EXPAND_LATENCY = Histogram(
    "lcm_expand_latency_ms", "How long a page of an expansion took, in milliseconds.", buckets=MILLISECONDS
)


@contextmanager
def timed(histogram: Histogram) -> Iterator[None]:
    """Observe how many milliseconds the block or the decorated function takes, also when it fails."""
    began = time.perf_counter()
    try:
        yield
    finally:
        histogram.observe((time.perf_counter() - began) * 1000)
