"""What tests of imports share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.importing import host_files as files
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


@pytest.fixture
def codex_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Path:
    """A home in which Codex was at work once."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "OPENCODE_DB", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    settings.DATA_DIR = tmp_path / "var"
    files.put(tmp_path, ".codex/sessions/2026/01/31/rollout-1.jsonl", files.lines_of(files.CODEX))
    return tmp_path
