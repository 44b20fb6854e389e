"""Real agent programs, as npm installs them: found in a folder or on PATH, or the test is skipped.

`AGENT_PROGRAMS` is the folder in which `npm install` was run; `.ci/run` sets it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

# What a program may take for a headless session.
SECONDS = 240
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


def own_environment(home: Path, **values: str) -> dict[str, str]:
    """The environment of a program in a home of its own."""
    kept = {"PATH": os.environ["PATH"], "TMPDIR": os.environ.get("TMPDIR", "/tmp"), "LANG": "C.UTF-8"}
    return {**kept, "HOME": str(home), "NO_PROXY": "127.0.0.1,localhost", **values}


def claude_environment(vendor_url: str) -> dict[str, str]:
    """The variables with which Claude Code asks this vendor, and nobody else."""
    return {
        "ANTHROPIC_BASE_URL": vendor_url,
        "ANTHROPIC_API_KEY": "x",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


@dataclass(frozen=True)
class Person:
    """Somebody with a home of their own, who runs agents in a project there."""

    home: Path

    @property
    def project(self) -> Path:
        folder = self.home / "project"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def writes(self, name: str, value: object) -> None:
        """Write a file of settings in the home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def runs(self, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program headless, to its end."""
        return subprocess.run(
            [agent_program(program), *arguments],
            cwd=self.project,
            env=own_environment(self.home, **environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
