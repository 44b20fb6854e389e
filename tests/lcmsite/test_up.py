"""`lcm up` as an operator runs it: a process tree that starts with one command and leaves nothing behind."""

import fcntl
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lcmsite.catalogue.problems import INTERRUPTED_EXIT_CODE
from lcmsite.queues import QUEUES
from tests.lcmsite.operating import (
    PROJECT,
    EmbeddedDatabase,
    Site,
    a_queue,
    agents_are_served,
    answers,
    end,
    eventually,
    free_port,
    is_gateway,
    own_environment,
    process_of,
    processes_of,
    run_lcm,
    until_ready,
)


@pytest.mark.thorough
def test_site_agents_and_gateway_are_served_and_no_process_is_left_after_ctrl_c(up, data_dir, port, mcp_port):
    gateway_port = free_port()
    running = up(LCM_MCP_PORT=str(mcp_port), LCM_GATEWAY_PORT=str(gateway_port))
    said = until_ready(running)
    eventually(lambda: agents_are_served(mcp_port) and is_gateway(gateway_port))
    ready = json.loads(Site(port).text("readyz"))

    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)

    assert f"http://127.0.0.1:{port}" in said
    assert f"http://127.0.0.1:{mcp_port}/mcp" in said
    assert f"as a gateway to models at http://127.0.0.1:{gateway_port}." in said
    assert ready == {"status": "ready", "missing": []}
    assert running.returncode == 0, errors
    assert processes_of(data_dir) == []


@pytest.mark.thorough
def test_the_gateway_is_served_alone(data_dir):
    port = free_port()
    words = ["manage.py", "lcm", "gateway", "--port", str(port)]
    environ = own_environment(LCM_DATA_DIR=str(data_dir))
    # As in a terminal: a shell has programs in the background ignore it.
    running = subprocess.Popen(
        [sys.executable, *words],
        cwd=PROJECT,
        env=environ,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        eventually(lambda: is_gateway(port))
    finally:
        running.send_signal(signal.SIGINT)
        status = running.wait(timeout=60)

    assert status == INTERRUPTED_EXIT_CODE
    assert process_of(data_dir, " gateway ") is None


@pytest.mark.thorough
def test_a_killed_supervisor_leaves_no_process_either(up, data_dir):
    running = up()
    until_ready(running)

    running.kill()
    running.wait()

    eventually(lambda: processes_of(data_dir) == [])


@pytest.mark.thorough
def test_each_killed_process_is_replaced(up, data_dir, port, mcp_port):
    running = up(LCM_MCP_PORT=str(mcp_port))
    until_ready(running)
    names = [" web ", "worker compaction", "worker maintenance", " mcp ", ".keeper"]
    victims = [process_of(data_dir, name) for name in names]

    for victim in victims:
        victim.kill()

    eventually(lambda: answers(port) and agents_are_served(mcp_port))
    eventually(lambda: all(process_of(data_dir, f"worker {queue}") for queue in ("compaction", "maintenance")))
    assert not set(victims) & set(processes_of(data_dir))
    end(running)
    assert processes_of(data_dir) == []


@pytest.mark.thorough
def test_web_and_workers_can_run_apart(up, data_dir, port):
    web = up("--no-worker")
    until_ready(web)
    workers = up("--no-web")
    until_ready(workers)

    commands = [" ".join(process.cmdline()) for process in processes_of(data_dir)]
    supervisors = {
        command.split("lcmsite.ops.processes ")[1].split()[0] for command in commands if "processes" in command
    }

    end(web, workers)
    assert supervisors == {str(web.pid), str(workers.pid)}
    assert sum("worker compaction" in command for command in commands) == 1
    assert processes_of(data_dir) == []


@pytest.mark.parametrize("place", ["database", pytest.param("redis", marks=pytest.mark.thorough)])
def test_the_workers_take_what_is_put_into_their_queues(up, data_dir, place, request):
    log = data_dir / "lcm.log"
    before = log.read_text() if log.exists() else ""
    redis_url = request.getfixturevalue("redis_url") if place == "redis" else ""
    running = up("--no-web", LCM_REDIS_URL=redis_url)
    until_ready(running)
    database = EmbeddedDatabase(data_dir)
    queues = [a_queue(name, redis_url=redis_url, connect=database.connect) for name in QUEUES]

    for queue in queues:
        queue.task(name="nobody_knows_it")(lambda: None)()

    eventually(lambda: [queue.storage.queue_size() for queue in queues] == [0, 0])
    for queue in queues:
        queue.storage.close()
    errors = end(running)
    assert errors == ""
    assert log.read_text().removeprefix(before).count("nobody_knows_it") == 2
    assert processes_of(data_dir) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("option", "taken"),
    [("--port or LCM_PORT", True), ("--mcp-port or LCM_MCP_PORT", True), ("--mcp-port or LCM_MCP_PORT", False)],
)
def test_a_port_in_use_is_refused_with_the_option_that_changes_it(up, data_dir, port, mcp_port, option, taken):
    of_agents = "MCP" in option
    wanted = mcp_port if of_agents and taken else port
    with socket.socket() as other:
        if taken:
            other.bind(("127.0.0.1", wanted))
            other.listen()

        # Or it is the port of the site.
        running = up(LCM_MCP_PORT=str(wanted if of_agents else 0))
        _, errors = running.communicate(timeout=60)

    assert running.returncode == 6
    assert f"Cannot listen on 127.0.0.1 port {wanted}" in errors
    assert option in errors
    assert taken or "It is the port of the site" in errors
    assert processes_of(data_dir) == []


@pytest.mark.thorough
@pytest.mark.parametrize("off", [["--no-mcp"], ["--mcp-port", "0"], ["--no-web"]], ids=" ".join)
def test_agents_can_be_left_out(up, data_dir, mcp_port, off):
    # With one kind of process left, so that there is something to get ready.
    others = [] if off == ["--no-web"] else ["--no-worker"]
    running = up(*off, *others, LCM_MCP_PORT=str(mcp_port))
    announced = until_ready(running)

    serving = process_of(data_dir, " mcp ")
    end(running)

    assert serving is None
    assert "/mcp" not in announced


@pytest.mark.thorough
def test_a_second_gateway_on_one_data_directory_is_refused(up, data_dir):
    lock = data_dir / "gateway" / "spool.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = up(LCM_GATEWAY_PORT=str(free_port()))
        said = refused.communicate(timeout=60)[1]

    assert refused.returncode == 2
    assert "Another gateway uses" in said and "--gateway-port 0" in said
    assert processes_of(data_dir) == []


# In short: starters at once share one database (test_embedded), and a sample is loaded but once (test_sample).
@pytest.mark.thorough
def test_two_first_starts_at_once_announce_the_same_compacted_sample(up, fresh_dir):
    both = [up("--sample", "--port", str(free_port()), LCM_DATA_DIR=str(fresh_dir)) for _ in range(2)]

    said = [_until_announced(running) for running in both]

    for running in both:
        running.terminate()
    for running in both:
        running.wait(timeout=60)
    announced = said[0][-1]
    stored, active = (int(number.replace(",", "")) for number in re.findall(r"\d+,\d+", announced))
    assert announced == said[1][-1]
    assert active < 0.7 * stored
    assert processes_of(fresh_dir) == []
    assert sum("Making the tables" in line for line in said[0] + said[1]) == 1
    assert all(len(lines) < 20 for lines in said), "the first start is quiet"


@pytest.mark.thorough
def test_of_two_migrations_at_once_one_waits_for_the_other(fresh_dir):
    with ThreadPoolExecutor(2) as both:
        ended = [both.submit(run_lcm, fresh_dir, "migrate") for _ in range(2)]

    assert [each.result().returncode for each in ended] == [0, 0]
    assert sorted("No migrations to apply." in each.result().stdout for each in ended) == [False, True]


def _until_announced(running: "subprocess.Popen[str]") -> list[str]:
    """What it says until it has announced the sample."""
    # Nobody else reads it, and a full pipe would hold it up.
    threading.Thread(target=running.stderr.read, daemon=True).start()
    said = []
    while line := running.stdout.readline():
        said.append(line)
        if "active context" in line:
            return said
    raise AssertionError("It ended before it had announced the sample.")
