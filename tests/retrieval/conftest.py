"""Readers of the tests' own workspace, and the lineage that they read."""

from __future__ import annotations

import pytest

from conversations.scope import Scope
from retrieval.assembler import ContextAssembler
from tests.factories import a_workspace
from tests.retrieval.lineages import Graph, a_graph


@pytest.fixture
def assembler(db: None) -> ContextAssembler:
    return ContextAssembler.from_settings(Scope(a_workspace().pk))


@pytest.fixture(scope="module")
def module_graph(module_rows: None) -> Graph:
    return a_graph()


@pytest.fixture
def graph(module_graph: Graph, db: None) -> Graph:
    return module_graph
