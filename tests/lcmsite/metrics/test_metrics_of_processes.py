"""Several processes count, and what they have counted together is what the database says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.lcmsite.exposed import ANSWERED, Exposed
from tests.lcmsite.operating import EmbeddedDatabase, Site, a_key_in, end, eventually, process_of, until_ready

TIMED = "django_http_requests_latency_seconds_by_view_method_count"
SMALL = {"LCM_MODEL_TOKEN_BUDGET": "4000", "LCM_FRESH_TAIL_COUNT": "4"}
CONVERSATIONS = 4
MESSAGES = 16
TEXT = "Message {0} about the harbour, its boats and the port 5433 of the server in the café. " * 24
UNDONE = "SELECT count(*) FROM compaction_jobs WHERE state IN ('queued', 'leased')"


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_metrics_of_two_web_processes_and_two_workers_equal_what_the_database_says(up, fresh_dir, port):
    running = up(LCM_DATA_DIR=str(fresh_dir), LCM_WEB_WORKERS="2", **SMALL)
    until_ready(running)
    # More of them, started apart.
    workers = up("--no-web", LCM_DATA_DIR=str(fresh_dir), **SMALL)
    until_ready(workers)
    site = Site(port, a_key_in(fresh_dir))

    def talk(number: int) -> None:
        conversation = site.post("conversations/", {"session_id": f"s{number}"})["conversation_id"]
        for turn in range(MESSAGES):
            message = {"role": ("user", "assistant")[turn % 2], "content": TEXT.format(turn)}
            message["idempotency_key"] = f"m{turn}"
            site.post(f"conversations/{conversation}/messages/", {"messages": [message]})
        site.post(f"conversations/{conversation}/messages/", {"messages": [message]})
        site.ask("POST", f"conversations/{conversation}/messages/", {"messages": [message | {"content": "other"}]})
        site.get(f"conversations/{conversation}/matches/?query=harbour")
        site.get(f"conversations/{conversation}/expansion/?from_seq=1&to_seq=5")

    with ThreadPoolExecutor(4) as callers:
        list(callers.map(talk, range(CONVERSATIONS)))
    database = EmbeddedDatabase(fresh_dir)
    eventually(lambda: database.one(UNDONE) == 0)
    # A worker that dies takes nothing of what it has counted with it.
    process_of(fresh_dir, "worker compaction").kill()
    for number in range(CONVERSATIONS):
        job = site.post(f"conversations/{number + 1}/compactions/", {"background": True})
        assert job["job_id"]
    eventually(lambda: database.one(UNDONE) == 0)

    told = Exposed(site.text("metrics"))

    assert told.by("lcm_ingest_messages_total", "role") == database.by("SELECT role, count(*) FROM messages GROUP BY 1")
    assert told.of("lcm_ingest_tokens_total") == database.one("SELECT sum(token_count) FROM messages")
    assert told.of("lcm_ingest_bytes_total") == database.one("SELECT sum(octet_length(content)) FROM messages")
    assert told.of("lcm_ingest_repeats_total") == told.of("lcm_ingest_conflicts_total") == CONVERSATIONS
    assert told.by("lcm_summaries_created_total", "kind") == database.by(
        "SELECT kind, count(*) FROM summaries GROUP BY 1"
    )
    assert told.by("lcm_summaries_by_level_total", "level") == database.by(
        "SELECT level, count(*) FROM summaries GROUP BY 1"
    )
    assert told.by("lcm_compaction_runs_total", "outcome", "reason") == database.by(
        "SELECT outcome, reason, count(*) FROM compaction_runs GROUP BY 1, 2"
    )
    assert told.of("lcm_compaction_runs_total") >= CONVERSATIONS
    assert told.of("lcm_context_tokens_total") == database.one("SELECT sum(token_count) FROM context_items")
    assert told.of("lcm_jobs") == 0
    assert told.of("lcm_search_latency_ms_count") == told.of("lcm_expand_latency_ms_count") == CONVERSATIONS
    assert told.of(ANSWERED, view="append") == CONVERSATIONS * (MESSAGES + 2)
    assert told.of(ANSWERED, view="append", status="409") == CONVERSATIONS
    assert told.of(TIMED, view="append") == CONVERSATIONS * (MESSAGES + 2)
    end(workers, running)


@pytest.mark.thorough
def test_figures_begin_anew_with_a_new_start(up, fresh_dir, port):
    first = up(LCM_DATA_DIR=str(fresh_dir))
    until_ready(first)
    Site(port, a_key_in(fresh_dir)).get("conversations/")
    end(first)

    second = up(LCM_DATA_DIR=str(fresh_dir))
    until_ready(second)
    told = Exposed(Site(port).text("metrics"))

    assert told.of(ANSWERED, view="list") == 0
    end(second)
