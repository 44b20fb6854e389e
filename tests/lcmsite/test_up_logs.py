"""With LCM_LOG_FORMAT=json, whatever `lcm up` writes can be read by a machine, line by line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from tests.lcmsite.operating import answers, eventually, process_of, processes_of

PROJECT = Path(__file__).resolve().parents[2]

# What Python itself would print as plain text.
PRINTS = """
import threading, warnings
import django
django.setup()
warnings.warn("old")
def fail():
    raise ValueError("in a thread")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
class Unraisable:
    def __del__(self):
        raise KeyError("in a destructor")
del (lambda it: it)(Unraisable()).nothing
"""


def events(text: str) -> list[dict[str, object]]:
    """Each line as JSON; a line that is none fails the test and is shown."""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            raise AssertionError(f"not JSON: {line}") from None
    return found


def in_json(**settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LCM_")}
    return kept | {"LCM_LOG_FORMAT": "json", "DJANGO_SETTINGS_MODULE": "lcmsite.settings"} | settings


def test_every_line_of_a_site_is_json_from_its_first_start_through_failures_to_its_end(up, fresh_dir, port):
    running = up(LCM_LOG_FORMAT="json", LCM_DATA_DIR=str(fresh_dir))
    lines: list[str] = []
    threading.Thread(target=lambda: lines.extend(iter(running.stderr.readline, "")), daemon=True).start()
    eventually(lambda: any('"ready"' in line for line in lines), seconds=90)

    for victim in children_of(process_of(fresh_dir, " web "), process_of(fresh_dir, "worker compaction")):
        victim.kill()
    process_of(fresh_dir, ".keeper").kill()
    eventually(lambda: any("process_ended" in line for line in lines) and answers(port), seconds=90)
    running.send_signal(signal.SIGINT)
    said = running.stdout.read()
    running.wait(timeout=60)
    eventually(lambda: processes_of(fresh_dir) == [])

    names = [event["event"] for event in events(said + "".join(lines))]
    assert names[0] == "migrated"
    assert {"ready", "process_ended"} <= set(names)
    assert names[-1] == "stopped"


def children_of(*processes: psutil.Process) -> list[psutil.Process]:
    """The processes with the workers that they have started."""
    return [each for process in processes for each in (*process.children(recursive=True), process)]


def test_what_python_would_print_is_a_line_of_the_log(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PRINTS],
        cwd=PROJECT,
        env=in_json(LCM_DATA_DIR=str(tmp_path)),
        capture_output=True,
        text=True,
    )

    levels = [event["level"] for event in events(done.stderr)]
    assert done.returncode == 1
    assert levels == ["warning", "critical", "critical", "critical"]


def test_a_refusal_of_the_command_line_is_json_too(tmp_path):
    done = subprocess.run(
        [sys.executable, "manage.py", "lcm", "no-such-verb"],
        cwd=PROJECT,
        env=in_json(LCM_DATA_DIR=str(tmp_path)),
        capture_output=True,
        text=True,
    )

    [refusal] = events(done.stderr)
    assert (done.returncode, refusal["code"]) == (2, "usage")
