"""Gives every meter somewhere to count: the Prometheus client, in memory or in the files of the shared directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.multiprocess import MultiProcessCollector

from conversations.metering import METERS, Meter
from lcmsite.ops.metrics.directory import shared_directory

# Where meters are declared.
DECLARED = (
    "conversations.observability",
    "compaction.observability",
    "retrieval.observability",
    "integrity.observability",
    "lcmsite.ops.metrics.faces",
)

OURS = CollectorRegistry()
"""What this process has counted."""


@dataclass(frozen=True)
class Sum:
    """A counter, as a meter's target."""

    counter: Counter
    # Kept by their labels, which are few: to ask the client for them each time takes as long as to count.
    series: dict[tuple[str, ...], Counter] = field(default_factory=dict)

    def take(self, amount: float, labels: tuple[str, ...]) -> None:
        one = self.series.get(labels)
        if one is None:
            one = self.series[labels] = self.counter.labels(*labels) if labels else self.counter
        one.inc(amount)


@dataclass(frozen=True)
class Spread:
    """A histogram, as a meter's target."""

    histogram: Histogram
    series: dict[tuple[str, ...], Histogram] = field(default_factory=dict)

    def take(self, amount: float, labels: tuple[str, ...]) -> None:
        one = self.series.get(labels)
        if one is None:
            one = self.series[labels] = self.histogram.labels(*labels) if labels else self.histogram
        one.observe(amount)


@cache
def start_counting() -> None:
    """From now on this process counts; what happened before is not told."""
    for each in DECLARED:
        import_module(each)
    # When each series began; several processes cannot tell, and nobody asks.
    disable_created_metrics()
    for meter in METERS:
        _export(meter)


def counted() -> CollectorRegistry:
    """What all processes of this machine have counted together, or this one, where it stands alone."""
    directory = shared_directory()
    if directory is None:
        return OURS
    together = CollectorRegistry()
    MultiProcessCollector(together, path=str(directory))
    return together


def _export(meter: Meter) -> None:
    if meter.buckets:
        histogram = Histogram(meter.name, meter.help, meter.labels, buckets=meter.buckets, registry=OURS)
        meter.target = Spread(histogram)
    else:
        counter = Counter(meter.name, meter.help, meter.labels, registry=OURS)
        for values in meter.known:
            counter.labels(*values)
        meter.target = Sum(counter)
