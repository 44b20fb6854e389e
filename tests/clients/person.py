"""Somebody who runs real agent programs, headless, in a home of their own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.clients.programs import agent_program

# What a program may take for a headless session.
SECONDS = 240


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
        own = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
            "LANG": "C.UTF-8",
            "NO_PROXY": "127.0.0.1,localhost",
            **environment,
        }
        return subprocess.run(
            [agent_program(program), *arguments],
            cwd=self.project,
            env=own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
