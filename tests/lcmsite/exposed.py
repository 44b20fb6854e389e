"""What `/metrics` tells, read as Prometheus reads it."""

from __future__ import annotations

from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

ANSWERED = "django_http_responses_total_by_status_view_method_total"
Labels = frozenset[tuple[str, str]]


class Exposed:
    """The samples of one answer, by name and labels."""

    def __init__(self, text: str) -> None:
        self.samples: dict[str, dict[Labels, float]] = defaultdict(dict)
        # As they are declared, also where there is no sample yet.
        declared = [line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE ")]
        self.families = {name for name, _ in declared}
        self.histograms = {name for name, kind in declared if kind == "histogram"}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.samples[sample.name][frozenset(sample.labels.items())] = sample.value

    def of(self, name: str, **labels: str) -> float:
        """The sum of all samples of this name that have these labels."""
        wanted = set(labels.items())
        return sum(value for held, value in self.samples[name].items() if wanted <= held)

    def by(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """What is not zero, by the values of these labels."""
        found: dict[tuple[str, ...], float] = defaultdict(float)
        for held, value in self.samples[name].items():
            if value:
                found[tuple(dict(held)[label] for label in labels)] += value
        return dict(found)

    def labels_of(self, name: str) -> set[str]:
        """The labels that a figure's samples have."""
        return {label for held in self.samples[name] for label, _ in held}

    @property
    def label_values(self) -> set[str]:
        """The values of all labels of LCM's metrics and django-prometheus'; the client adds some of Python's own."""
        ours = [samples for name, samples in self.samples.items() if name.startswith(("lcm_", "django_"))]
        return {value for samples in ours for held in samples for _, value in held}
