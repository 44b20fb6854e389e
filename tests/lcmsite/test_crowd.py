"""A key that asks for much at once slows itself down, and nobody else: the web server, its threads and its database."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest

from tests.flows.processes import constants
from tests.lcmsite.operating import Site, a_key_in, end, lcm_in, until_ready

pytestmark = pytest.mark.thorough

# Of a pattern that takes all threads, most would wait for as long as it runs.
SLOW_SEARCH = urlencode({"query": r"(\w+\s?)*\1$", "mode": "regex"})


def a_conversation_of(site: Site, *, messages: int) -> int:
    """One whose search takes long: words that are common, and texts that patterns get lost in."""
    words = random.Random(1)
    known = ["".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(500)]
    conversation_id: int = site.post("conversations/", {"session_id": "mine"})["conversation_id"]
    batch = [{"role": "user", "content": " ".join(words.choices(known, k=200))} for _ in range(messages)]
    site.post(f"conversations/{conversation_id}/messages/", {"messages": batch})
    return conversation_id


def timed_append(site: Site, conversation_id: int) -> tuple[int, float]:
    began = time.perf_counter()
    body = {"messages": [{"role": "user", "content": "message"}]}
    status = site.ask("POST", f"conversations/{conversation_id}/messages/", body).status_code
    return status, time.perf_counter() - began


def test_one_key_with_many_patterns_refuses_no_append_of_another(up, fresh_dir, port):
    # So that the patterns end; each would take for ever. Nobody reads the log, and a full pipe stops the site.
    limits = {"LCM_SEARCH_TIMEOUT_MS": "8000", "LCM_LOG_LEVEL": "ERROR"} | constants(web_threads=4)
    running = up(LCM_DATA_DIR=str(fresh_dir), **limits)
    until_ready(running)
    lcm_in(fresh_dir, "workspace", "create", "other")
    theirs = lcm_in(fresh_dir, "--workspace", "other", "key", "create", "test", "--scope", "write")["key"]
    greedy, polite = Site(port, a_key_in(fresh_dir, "read", "write")), Site(port, theirs)
    path = f"conversations/{a_conversation_of(greedy, messages=200)}/matches/?{SLOW_SEARCH}"
    mine = a_conversation_of(polite, messages=1)
    over = threading.Event()

    def search_again_and_again() -> list[bool]:
        """Whether each refusal said when to try again."""
        refusals = []
        while not over.is_set():
            reply = greedy.ask("GET", path)
            if reply.status_code == 429:
                refusals.append("retry-after" in reply.headers)
                over.wait(1)
        return refusals

    with ThreadPoolExecutor(24) as crowd:
        searching = [crowd.submit(search_again_and_again) for _ in range(24)]
        time.sleep(0.5)
        appends = [timed_append(polite, mine) for _ in range(60)]
        over.set()

    refusals = [said for each in searching for said in each.result()]
    figures = polite.text("metrics")
    end(running)
    assert {status for status, _ in appends} == {201}
    # Less than one pattern takes, on a machine that is busy with them.
    assert sorted(seconds for _, seconds in appends)[54] < 4.0
    assert refusals and all(refusals)
    assert 'lcm_too_many_at_once_total{kind="heavy"}' in figures
