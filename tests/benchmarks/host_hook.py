"""`lcm hook`, for which a host waits at each event, beside a Python that does nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import duel
from tests.benchmarks.report import Line, at_most, milliseconds

TIMES, WARM_UP = 40, 3
PROMPT = {"hook_event_name": "UserPromptSubmit", "session_id": "bench", "prompt": "word " * 200}


def hooked() -> list[Line]:
    """A prompt of Claude Code, from the start of the process to its end, in a home where nothing is yet."""
    own = [str(Path(sys.executable).with_name("lcm")), "hook", "claude-code"]
    with tempfile.TemporaryDirectory(prefix="lcm-bench-home-") as home:
        event = json.dumps({**PROMPT, "cwd": home, "transcript_path": f"{home}/bench.jsonl"}).encode()
        environ = {"HOME": home, "PATH": os.environ["PATH"]}

        def run(command: list[str]) -> None:
            ran = subprocess.run(command, input=event, env=environ, cwd=home, capture_output=True, check=True)
            assert (ran.stdout, ran.stderr) == (b"", b""), ran

        found = duel(
            floor=lambda _: run([sys.executable, "-c", "pass"]),
            ours=lambda _: run(own),
            work=[("", "")] * (WARM_UP + TIMES),
            warm_up=WARM_UP,
        )
        [_] = Path(home).glob(".local/state/lcm/spool/import-*")
    work = "lcm hook, prompt: from start to end, p50; floor: python -c pass"
    return [milliseconds("22", work, found, at_most(150, " ms"))]
