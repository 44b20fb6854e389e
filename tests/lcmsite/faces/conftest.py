"""The world that is asked about, made once for each module of tests."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from tests.lcmsite.faces.world import World, a_world


@pytest.fixture(scope="module")
def harbour_world(module_rows: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Path]:
    """A compacted conversation with a tool call, a file and a run: what there is to ask about, where the file lies."""
    files = tmp_path_factory.mktemp("files")
    with override_settings(MEDIA_ROOT=files):
        world = a_world()
    return world, files


@pytest.fixture
def world(harbour_world: tuple[World, Path], db: None, settings: Any) -> World:
    """What there is to ask about; what a test changes, it changes for itself alone."""
    world, settings.MEDIA_ROOT = harbour_world
    return copy.deepcopy(world)
