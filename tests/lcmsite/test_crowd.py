"""A key that asks for much at once slows itself down, and nobody else: the web server, its threads and its database."""

from __future__ import annotations

import signal
import time

import pytest

from tests.lcmsite.crowd import PATTERN, Crowd, a_long_conversation, slow_search, timed_appends
from tests.lcmsite.operating import eventually, until_ready
from tests.lcmsite.sites import EmbeddedDatabase, Site, a_key_in, lcm_in

# Nobody reads the log meanwhile, and a pipe that is full would stop the site.
QUIET = {"LCM_LOG_LEVEL": "ERROR"}


def two_sites(fresh_dir, port):
    """The site for two keys, each of a workspace of its own."""
    lcm_in(fresh_dir, "workspace", "create", "other")
    greedy = a_key_in(fresh_dir, "read", "write")
    polite = lcm_in(fresh_dir, "--workspace", "other", "key", "create", "test", "--scope", "write")["key"]
    return Site(port, greedy), Site(port, polite)


def test_one_key_with_many_patterns_refuses_no_append_of_another(up, fresh_dir, port):
    # So that the patterns end soon; each would take for ever.
    limits = {"LCM_WEB_THREADS": "4", "LCM_SEARCH_TIMEOUT_MS": "1500"}
    running = up(LCM_DATA_DIR=str(fresh_dir), **limits, **QUIET)
    until_ready(running)
    greedy, polite = two_sites(fresh_dir, port)
    conversation_id = a_long_conversation(greedy, messages=200)
    mine = polite.post("conversations/", {"session_id": "mine"})["conversation_id"]
    timed_appends(polite, mine, count=20)

    with Crowd(greedy, slow_search(conversation_id), clients=24) as crowd:
        time.sleep(0.5)
        beside = timed_appends(polite, mine, count=60)

    figures = polite.text("metrics")
    running.send_signal(signal.SIGTERM)
    running.wait(timeout=60)
    assert beside.statuses == {201: 60}
    # Of a pattern that takes all threads, most would wait for as long as it runs.
    assert beside.took(0.9) < 1.0
    assert crowd.statuses[429] > 0 and crowd.refusals_without_retry_after == 0
    assert 'lcm_too_many_at_once_total{kind="heavy"}' in figures


@pytest.mark.thorough
def test_a_search_over_mcp_is_cancelled_when_its_client_disconnects(up, fresh_dir, port, mcp_port):
    import httpx2

    running = up(LCM_DATA_DIR=str(fresh_dir), LCM_MCP_PORT=str(mcp_port), LCM_SEARCH_TIMEOUT_MS="120000", **QUIET)
    until_ready(running)
    site = Site(port, a_key_in(fresh_dir, "read", "write"))
    a_long_conversation(site, messages=200)
    database = EmbeddedDatabase(fresh_dir)
    searching = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE state = 'active' AND application_name = 'lcm' AND query LIKE '%messages%' AND pid <> pg_backend_pid()"
    )
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "lcm_grep", "arguments": {"query": PATTERN, "mode": "regex"}},
    }
    headers = {"Authorization": f"Bearer {site.key}", "Accept": "application/json, text/event-stream"}

    with pytest.raises(httpx2.TimeoutException):
        httpx2.post(f"http://127.0.0.1:{mcp_port}/mcp", json=call, headers=headers, timeout=3)
    assert database.one("SELECT count(*) FROM messages") == 200

    eventually(lambda: database.one(searching) == 0, seconds=20)
    running.send_signal(signal.SIGTERM)
    running.wait(timeout=60)
