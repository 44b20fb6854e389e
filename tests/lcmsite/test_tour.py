"""docs/tour.md, walked by a shell: every command as it stands there, on a site that `make run` would start."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lcmsite.operating import agents_are_served, eventually

TOUR = Path(__file__).resolve().parents[2] / "docs" / "tour.md"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not (shutil.which("bash") and shutil.which("curl")), reason="bash or curl is not installed"),
]


def commands(*, port: int, mcp_port: int) -> str:
    """What the tour has one type, in one script that ends at the first thing that fails."""
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", TOUR.read_text(), re.S | re.M))
    for said, here in (("127.0.0.1:8000", f"127.0.0.1:{port}"), ("127.0.0.1:8001", f"127.0.0.1:{mcp_port}")):
        assert said in script
        script = script.replace(said, here)
    return f'set -euo pipefail\ncurl() {{ command curl --fail-with-body --noproxy "*" "$@"; }}\n{script}'


def test_every_command_of_the_tour_runs_as_it_stands(up, data_dir, port, mcp_port, tmp_path):
    running = up("--sample", LCM_MCP_PORT=str(mcp_port))
    for line in running.stdout:
        if line.startswith("Try:"):
            break
    eventually(lambda: agents_are_served(mcp_port), seconds=60)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LCM_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"

    walked = subprocess.run(
        ["bash", "-c", commands(port=port, mcp_port=mcp_port)],
        cwd=tmp_path, env={**kept, "PATH": path, "LCM_DATA_DIR": str(data_dir), "LCM_LOG_LEVEL": "ERROR"},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    running.send_signal(signal.SIGINT)
    running.wait(timeout=60)

    assert walked.returncode == 0, walked.stdout[-2000:] + walked.stderr
    assert "Port 5433, since Monday." in walked.stdout
    assert walked.stdout.count("everything holds") == 2
