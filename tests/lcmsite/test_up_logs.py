"""With LCM_LOG_FORMAT=json, whatever `lcm up` writes can be read by a machine, line by line."""

from __future__ import annotations

import json
import signal
import threading

import pytest

from tests.lcmsite.operating import answers, end, eventually, process_of, processes_of, run_lcm, run_python, until_ready

pytestmark = pytest.mark.thorough

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


IN_JSON = {"LCM_LOG_FORMAT": "json", "DJANGO_SETTINGS_MODULE": "lcmsite.settings"}


def test_every_line_of_a_site_is_json_from_its_first_start_through_failures_to_its_end(up, fresh_dir, port):
    running = up(LCM_LOG_FORMAT="json", LCM_DATA_DIR=str(fresh_dir))
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(iter(running.stderr.readline, "")), daemon=True)
    reader.start()
    eventually(lambda: any('"ready"' in line for line in lines), seconds=90)

    for victim in (" web ", "worker compaction", ".keeper"):
        process_of(fresh_dir, victim).kill()
    eventually(lambda: any("process_ended" in line for line in lines) and answers(port), seconds=90)
    running.send_signal(signal.SIGINT)
    said = running.stdout.read()
    running.wait(timeout=60)
    reader.join(60)
    eventually(lambda: processes_of(fresh_dir) == [])

    names = [event["event"] for event in events(said + "".join(lines))]
    assert names[0] == "migrated"
    assert {"ready", "process_ended"} <= set(names)
    assert names[-1] == "stopped"


def test_what_python_would_print_is_a_line_of_the_log(tmp_path):
    done = run_python("-c", PRINTS, LCM_DATA_DIR=str(tmp_path), **IN_JSON)

    levels = [event["level"] for event in events(done.stderr)]
    assert done.returncode == 1
    assert levels == ["warning", "critical", "critical", "critical"]


def test_a_refusal_of_the_command_line_is_json_too(tmp_path):
    done = run_lcm(tmp_path, "no-such-verb", **IN_JSON)

    [refusal] = events(done.stderr)
    assert (done.returncode, refusal["code"]) == (2, "usage")


def test_a_command_says_that_it_starts_a_server_of_its_own_and_not_beside_lcm_up(up, data_dir):
    running = up("--no-web")
    until_ready(running)
    beside = run_lcm(data_dir, "check")
    end(running)

    alone = run_lcm(data_dir, "check")

    assert "PostgreSQL" not in beside.stderr
    assert f"Started LCM's own PostgreSQL in {data_dir}: no LCM_DATABASE_URL is set." in alone.stderr
