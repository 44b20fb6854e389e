"""Real agent programs, as npm installs them: found in a folder or on PATH, or the test is skipped.

`AGENT_PROGRAMS` is the folder in which `npm install` was run; `.ci/run` sets it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "opencode": "opencode-ai",
    "pi": "@earendil-works/pi-coding-agent",
}


def agent_program(name: str) -> str:
    """The path of a program; skips the test where it is not installed."""
    folder = os.environ.get("AGENT_PROGRAMS")
    inside = None if folder is None else Path(folder, "node_modules", ".bin", name)
    found = str(inside) if inside is not None and inside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: `npm install {PACKAGES[name]}` in the folder AGENT_PROGRAMS")
    return found
