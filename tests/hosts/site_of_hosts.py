"""A whole LCM for real hosts: `lcm up` with a database of its own, and homes that are connected to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.flows.processes import stop, wait_until
from tests.guardian import a_directory
from tests.lcmsite.operating import PROJECT, Site, a_key_in, free_port, own_environment, processes_of, run_python


@dataclass(frozen=True)
class HostSite:
    """A running LCM, and the way to it for somebody who reads it."""

    data_dir: Path
    port: int
    mcp_port: int
    key: str

    @property
    def api(self) -> Site:
        return Site(self.port, self.key)

    @property
    def settings(self) -> dict[str, str]:
        return {"LCM_DATA_DIR": str(self.data_dir), "LCM_PORT": str(self.port), "LCM_MCP_PORT": str(self.mcp_port)}

    def lcm(self, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """The command line of the person who lives in this home."""
        return run_python("manage.py", "lcm", *words, HOME=str(home), **self.settings)

    def connect(self, home: Path, host: str, *more: str) -> None:
        done = self.lcm(home, "connect", host, "--yes", *more)
        assert done.returncode == 0, done.stderr

    def messages(self, session: str) -> list[dict[str, Any]]:
        """All messages of a session; none if there is no such session."""
        found = self.api.ask("GET", f"conversations/find/?session_id={session}")
        if found.status_code == 404:
            return []
        listed = self.api.get(f"conversations/{found.json()['conversation_id']}/messages/?limit=500")
        return list(listed["items"])

    def text_of(self, session: str) -> str:
        return json.dumps(self.messages(session), ensure_ascii=False)

    def sessions(self) -> list[dict[str, Any]]:
        return list(self.api.get("conversations/?limit=100")["items"])

    def wait_for(self, session: str, *words: str, seconds: float = 60) -> None:
        wait_until(
            lambda: all(word in self.text_of(session) for word in words), seconds=seconds, what=f"{words} are stored"
        )


@contextmanager
def a_site() -> Iterator[HostSite]:
    data_dir = a_directory()
    port, mcp_port = free_port(), free_port()
    settings = {"LCM_DATA_DIR": str(data_dir), "LCM_PORT": str(port), "LCM_MCP_PORT": str(mcp_port)}
    running = subprocess.Popen(
        [sys.executable, "manage.py", "up"],
        cwd=PROJECT,
        # Not at the usual port of the gateway, which another site may have.
        env=own_environment(**settings, LCM_GATEWAY_PORT="0", LCM_WEB_WORKERS="1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(Site(port).is_ready, seconds=120, what="LCM is ready")
        yield HostSite(data_dir, port, mcp_port, a_key_in(data_dir, "admin"))
    finally:
        stop([running])
        for process in processes_of(data_dir):
            process.kill()
