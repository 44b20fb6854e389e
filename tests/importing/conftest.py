"""What tests of imports share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lcmsite.callers import lcm


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Imports bytes as a file of this name; what the refusal says, as JSON."""

    def run(name: str, content: bytes) -> dict[str, Any]:
        path = tmp_path / name
        path.write_bytes(content)
        reply = lcm("--json", "import", str(path))
        assert reply.exit_code in {2, 4}, reply.err  # what is invalid, and what conflicts
        return reply.problem

    return run


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., Any]:
    """Imports bytes as a file of this name; what `lcm import` reports."""

    def run(name: str, content: bytes, *more: str) -> Any:
        path = tmp_path / name
        path.write_bytes(content)
        found = lcm("--json", "import", str(path), *more)
        assert found.exit_code == 0, found.err
        return found.json

    return run
