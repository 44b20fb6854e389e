"""`lcm map` against a vendor over HTTP and a worker process: waited for, interrupted, and by outside agents."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from retrieval.map.models import MapRun
from tests.compaction.vendor import Vendor
from tests.factories import a_conversation
from tests.flows.processes import PROJECT, environment, start_worker, stop, wait_until
from tests.lcmsite.callers import lcm
from tests.retrieval.map.labels import PROMPT, SCHEMA, an_item, answering, expected, item_in, labelling

pytestmark = pytest.mark.thorough

GOOD = {"id": 0, "label": "bug"}


@pytest.fixture
def vendor(committed_db: None, settings: Any) -> Iterator[Vendor]:
    """A vendor that labels all lines but the last of four, and a worker that calls it."""

    def label(asked: Any) -> None:
        (answering("no idea") if item_in(asked)["id"] == 3 else labelling)(asked)

    with Vendor(label) as vendor:
        policy = {"chat_url": vendor.url, "chat_model": "labeller", "spend_max_calls": 0}
        settings.LCM = {**settings.LCM, **policy}
        a_conversation("There is much to label.", session_id="harbour")
        worker = start_worker("maintenance", **policy)
        yield vendor
        stop([worker])


def lines(count: int) -> bytes:
    return "".join(json.dumps(an_item(number)) + "\n" for number in range(count)).encode()


def submitted(kind: str, *more: str, stdin: bytes = b"") -> Any:
    return lcm("--json", "map", kind, PROMPT, "--schema", json.dumps(SCHEMA), "--in", "harbour", *more, stdin=stdin)


@pytest.mark.parametrize(("count", "exit_code"), [(3, 0), (4, 1)])
def test_a_run_that_is_waited_for_says_by_its_exit_status_whether_every_item_is_done(
    vendor, tmp_path, count, exit_code
):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(lines(count))

    run = submitted("llm", "--input", str(path), "--max-attempts", "1", "--wait")

    assert (run.exit_code, run.json["state"], run.json["failed"]) == (exit_code, "completed", exit_code)
    outputs = lcm("--json", "map", "output", run.json["run_id"]).json["items"]
    assert [json.loads(item["output"]) for item in outputs] == [expected(number) for number in range(3)]
    assert lcm("map", "status", run.json["run_id"]).exit_code == 0


def test_an_interrupted_wait_leaves_the_run_going_and_says_how_to_look_at_it(vendor):
    command = [str(Path(sys.executable).with_name("lcm")), "map", "agentic", PROMPT, "--schema", json.dumps(SCHEMA)]
    waiting = subprocess.Popen(
        [*command, "--in", "harbour", "--retain", "the final word", "--wait"],
        cwd=PROJECT,
        env=environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # What runs the tests in the background may ignore it, and its children would, too.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    waiting.stdin.write(lines(1))
    waiting.stdin.close()
    wait_until(MapRun.objects.exists, seconds=60, what="the run is submitted")
    # It submits in a transaction, and begins to wait when that is over.
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(timeout=6)

    waiting.send_signal(signal.SIGINT)
    said = waiting.stderr.read().decode()

    run = MapRun.objects.get()
    assert waiting.wait(timeout=30) == 130
    assert f"lcm: {run.pk} continues; `lcm map status {run.pk}` shows its progress." in said
    assert run.state == "queued"
    [item] = lcm("--json", "map", "claim", run.pk, "me").json["items"]
    mine = [str(item["item_id"]), str(item["fence"])]
    refused = lcm("--json", "map", "complete", *mine, "--output", "{}")
    late = lcm("--json", "map", "complete", mine[0], "7", "--output", json.dumps(GOOD))
    done = lcm("--json", "map", "complete", *mine, "--output", json.dumps(GOOD))
    assert [(each.exit_code, each.problem["code"]) for each in (refused, late)] == [
        (2, "output_invalid"),
        (4, "lease_lost"),
    ]
    assert (done.exit_code, lcm("--json", "map", "status", run.pk).json["state"]) == (0, "completed")


def test_a_run_from_standard_input_that_is_paused_ends_the_waiting_as_incomplete(vendor):
    run = submitted("llm", "--budget-tokens", "1", "--concurrency", "1", "--wait", stdin=lines(2))

    assert (run.exit_code, run.json["state"], run.json["pause_reason"]) == (1, "paused", "budget")
