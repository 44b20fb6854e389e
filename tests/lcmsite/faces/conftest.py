"""The world that is asked about, made once for each module of tests."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from tests.lcmsite.faces.world import World, a_world


@pytest.fixture(scope="module")
def harbour_world(module_rows: None, module_files: Path) -> World:
    """A compacted conversation with a tool call, a file and a run: what there is to ask about."""
    return a_world()


@pytest.fixture
def world(harbour_world: World) -> World:
    """What there is to ask about; what a test changes, it changes for itself alone."""
    return copy.deepcopy(harbour_world)
