"""Readers of the tests' own workspace, and the lineage that they read."""

from __future__ import annotations

import pytest

from conversations.scope import Scope
from retrieval.assembler import ContextAssembler
from retrieval.search import prepare
from tests.factories import a_workspace
from tests.retrieval.lineages import Graph, a_graph


@pytest.fixture(autouse=True)
def no_counts_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test read the statistics of its own messages.

    Within the transaction of a module, PostgreSQL goes on telling the time of an earlier ANALYZE.
    """
    monkeypatch.setattr(prepare, "_counted", {})


@pytest.fixture
def assembler(db: None) -> ContextAssembler:
    return ContextAssembler.from_settings(Scope(a_workspace().pk))


@pytest.fixture(scope="module")
def graph(module_rows: None) -> Graph:
    return a_graph()
