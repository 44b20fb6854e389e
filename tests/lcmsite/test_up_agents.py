"""`lcm up` and agents: the tools are served beside the site, and end with it."""

import signal
import socket

import pytest

from tests.lcmsite.operating import agents_are_served, answer, eventually, process_of, processes_of, until_ready


def test_agents_are_served_and_nothing_is_left_when_it_stops(up, data_dir, port, mcp_port):
    running = up(LCM_MCP_PORT=str(mcp_port))
    said = until_ready(running)
    eventually(lambda: agents_are_served(mcp_port))
    ready = answer(port, "readyz")

    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=60)

    assert f"http://127.0.0.1:{mcp_port}/mcp" in said
    assert ready == {"status": "ready", "missing": []}
    assert running.returncode == 0, errors
    assert processes_of(data_dir) == []


@pytest.mark.parametrize("off", [["--no-mcp"], ["--mcp-port", "0"], ["--no-web"]], ids=" ".join)
def test_agents_can_be_left_out(up, data_dir, mcp_port, off):
    # With one kind of process left, so that there is something to get ready.
    others = [] if off == ["--no-web"] else ["--no-worker"]
    running = up(*off, *others, LCM_MCP_PORT=str(mcp_port))
    said = until_ready(running)

    serving = process_of(data_dir, " mcp ")
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)

    assert serving is None
    assert "/mcp" not in said


def test_a_port_in_use_is_told_at_once(up, data_dir, mcp_port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", mcp_port))
        taken.listen()

        running = up(LCM_MCP_PORT=str(mcp_port))
        _, errors = running.communicate(timeout=60)

    assert running.returncode == 6
    assert f"Cannot listen on 127.0.0.1 port {mcp_port}" in errors
    assert "--mcp-port or LCM_MCP_PORT" in errors
    assert processes_of(data_dir) == []


def test_the_site_and_agents_cannot_share_a_port(up, port):
    running = up(LCM_MCP_PORT=str(port))

    _, errors = running.communicate(timeout=60)

    assert running.returncode == 6
    assert "It is the port of the site" in errors
