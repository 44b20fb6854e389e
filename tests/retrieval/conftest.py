"""Readers of the tests' own workspace, and the lineage that they read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from conversations.scope import Scope
from retrieval.assembler import ContextAssembler
from tests.factories import a_workspace
from tests.made_once import made_once
from tests.retrieval.lineages import Graph, a_graph


@pytest.fixture(scope="module")
def module_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """For fixtures of a module: what they write is there for each of its tests, and gone after the last."""
    with made_once(django_db_blocker):
        yield


@pytest.fixture
def assembler(db: None) -> ContextAssembler:
    return ContextAssembler.from_settings(Scope(a_workspace().pk))


@pytest.fixture(scope="module")
def module_graph(module_rows: None) -> Graph:
    return a_graph()


@pytest.fixture
def graph(module_graph: Graph, db: None) -> Graph:
    return module_graph
