"""The dashboard and the alerts in docs/ ask for figures that there are, with labels and values that these have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from compaction.llm.types import BreakerState
from compaction.models import ModelEndpoint
from compaction.types import Outcome
from conversations.types import Level
from integrity.checker import IntegrityChecker
from tests.factories import a_conversation
from tests.lcmsite.exposed import Exposed

DOCS = Path(__file__).resolve().parents[2] / "docs"
DASHBOARD = json.loads((DOCS / "grafana-dashboard.json").read_text())
RULES = yaml.safe_load((DOCS / "prometheus-alerts.yml").read_text())
# What Prometheus makes itself, and the labels that it adds.
ITS_OWN = {"up"}
ITS_LABELS = {"job", "instance", "le"}
FUNCTIONS = {"sum", "max", "min", "rate", "increase", "histogram_quantile", "label_values"}
WORDS = {"by", "and", "or", "offset", "on"}

_SELECTOR = re.compile(r"([a-z_]+[a-z_0-9]*)\s*(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_GROUPING = re.compile(r"\bby \(([^)]*)\)")

# A metric that nothing was counted for has no sample to show its labels.
WITHOUT_SAMPLES = {"lcm_mcp_calls_total": {"tool", "outcome"}, "lcm_mcp_call_seconds": {"tool"}}


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


QUERIES = [
    *((f"{panel['title']} {target['refId']}", target["expr"]) for panel in panels() for target in panel["targets"]),
    *((rule["alert"], rule["expr"]) for rule in rules()),
]


@pytest.fixture(scope="module")
def told(module_rows: None) -> Exposed:
    """Everything that can be told: with a model that was asked, and a report."""
    a_conversation("hello")
    ModelEndpoint.objects.create(name="chat", calls=1)
    IntegrityChecker.from_settings().run()
    Client().get("/healthz")
    return Exposed(Client().get("/metrics").content.decode())


def names_in(expression: str) -> set[str]:
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"[^\"]*\"", " ", _GROUPING.sub(" ", expression))
    return set(re.findall(r"(?<![\w.])[a-z_][a-z_0-9]*\b", bare)) - FUNCTIONS - WORDS - {"h"}


def test_every_figure_that_is_asked_for_is_told(told):
    declared = set(told.samples) | {family.removesuffix("_total") for family in told.families} | told.families
    declared |= {f"{name}{end}" for name in told.histograms for end in ("_bucket", "_sum", "_count")}

    for title, expression in QUERIES:
        unknown = names_in(expression) - declared - ITS_OWN
        assert not unknown, (title, unknown)


def test_every_label_that_is_asked_for_is_one_of_the_figure(told):
    for title, expression in QUERIES:
        for name, matchers in _SELECTOR.findall(re.sub(r"\[[^\]]*\]", "", expression)):
            if not name.startswith(("lcm_", "django_")):
                continue
            known = (
                told.labels_of(name) | WITHOUT_SAMPLES.get(re.sub("_(bucket|sum|count)$", "", name), set()) | ITS_LABELS
            )
            asked = {label for label, _, _ in _MATCHER.findall(matchers)}
            asked |= {label.strip() for group in _GROUPING.findall(expression) for label in group.split(",")}
            assert asked <= known, (title, name, asked - known)


def test_every_value_that_is_asked_for_can_be_one():
    values = {
        "outcome": {each.value for each in Outcome},
        "level": {each.value for each in Level},
        "state": {each.value for each in BreakerState} | {"queued", "leased", "failed"},
        "view": {"readyz"},
    }
    for title, expression in QUERIES:
        for label, _, value in _MATCHER.findall(expression):
            if label in values:
                assert set(value.split("|")) <= values[label], (title, label)


def test_what_the_specification_names_is_on_the_dashboard():
    asked = set().union(*(names_in(target["expr"]) for panel in panels() for target in panel["targets"]))

    assert {"lcm_context_tokens_total", "lcm_compaction_runs_total", "lcm_summaries_created_total"} <= asked
    assert {"lcm_integrity_findings", "lcm_expand_latency_ms_bucket", "lcm_search_latency_ms_bucket"} <= asked


def test_no_alert_needs_a_counter_of_workers_whose_machine_may_serve_no_metrics():
    of_workers = ("lcm_compaction", "lcm_summaries", "lcm_integrity_failures")

    assert not [rule for rule in rules() if any(name.startswith(of_workers) for name in names_in(rule["expr"]))]


def test_every_alert_says_how_bad_it_is_and_what_it_means():
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith((".", "?"))
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))


def test_the_document_names_every_figure_and_no_other(told):
    text = (DOCS / "observability.md").read_text()

    named = set(re.findall(r"`((?:lcm|django)_[a-z_]+)", text))

    assert {name for name in named if name.startswith("lcm_")} == {
        name for name in told.families if name.startswith("lcm_")
    }
    assert named <= told.families
