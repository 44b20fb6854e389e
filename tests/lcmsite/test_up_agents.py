"""`lcm up` and agents: the tools are served beside the site, or not at all."""

import signal
import socket

import pytest

from conversations.errors import Invalid, Unavailable
from lcmsite.management.commands.up import _require_free
from tests.lcmsite.operating import process_of, processes_of, until_ready


@pytest.mark.thorough
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


def test_a_port_that_cannot_be_had_is_told_with_the_option_that_changes_it(mcp_port):
    of_agents = ("--mcp-port", "LCM_MCP_PORT")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", mcp_port))
        taken.listen()

        with pytest.raises(Unavailable, match="--mcp-port or LCM_MCP_PORT"):
            _require_free("127.0.0.1", mcp_port, named=of_agents)
    with pytest.raises(Unavailable, match="It is the port of the site"):
        _require_free("127.0.0.1", mcp_port, named=of_agents, taken=mcp_port)
    with pytest.raises(Invalid, match="Cannot listen on 192.0.2.1 port"):
        _require_free("192.0.2.1", mcp_port, named=of_agents)


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_the_site_and_agents_cannot_share_a_port(up, port):
    running = up(LCM_MCP_PORT=str(port))

    _, errors = running.communicate(timeout=60)

    assert running.returncode == 6
    assert "It is the port of the site" in errors
