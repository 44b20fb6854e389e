"""A request's id goes with what it led to: into the job, and into every line that the worker logs about it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django_huey import get_queue

from compaction.background.worker import CompactionWorker
from compaction.models import CompactionJob
from conversations.models import Conversation
from integrity import tasks as scan_tasks
from lcmsite.ops.logs import logging_settings
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key

# The specification's, and ours.
FIELDS = {
    "conversation_id",
    "session_id",
    "compaction_id",
    "summary_id",
    "trigger_reason",
    "token_before",
    "token_after",
    "request_id",
    "job_id",
}


class Lines(logging.Handler):
    """Log lines as they would be written, read again."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []
        made = logging.config.DictConfigurator(logging_settings(level="INFO", format="json"))
        self.setFormatter(made.configure_formatter(made.config["formatters"]["lcm"]))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))

    def called(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def conversation_id(db: None) -> int:
    return a_conversation(*(f"Message {n} about the harbour and its boats. " * 30 for n in range(40))).conversation_id


def test_a_request_s_id_follows_its_job_into_the_worker_and_no_further(conversation_id, lines):
    reply = Api(an_api_key()).post(f"conversations/{conversation_id}/compactions/", {"background": True})
    request_id = reply.headers["X-Request-ID"]

    CompactionWorker.from_settings().work(job_id=reply.body["job_id"])
    logging.getLogger("compaction").info("idle")

    assert CompactionJob.objects.get(pk=reply.body["job_id"]).request_id == request_id
    [finished] = lines.called("compaction_finished")
    created = lines.called("summary_created")
    assert created
    for line in (finished, *created):
        assert (line["request_id"], line["job_id"]) == (request_id, reply.body["job_id"])
    assert set(created[0]) >= FIELDS
    assert set(finished) >= FIELDS - {"summary_id"}
    assert not {"request_id", "job_id"} & lines.called("idle")[0].keys()


def test_what_lcm_asks_of_itself_has_no_request(conversation_id):
    CompactionJob.objects.all().delete()

    CompactionWorker.from_settings().engine.request(conversation_id=conversation_id)

    assert CompactionJob.objects.get().request_id == ""


def test_a_scan_is_told_which_request_it_comes_from(committed_db):
    conversation_id = a_conversation("hello").conversation_id
    queue = get_queue("maintenance")
    queue.flush()

    reply = Api(an_api_key()).post(f"conversations/{conversation_id}/integrity-reports/", {"background": True})

    task = queue.dequeue()
    assert task.kwargs == {"scan_id": reply.body["scan_id"], "request_id": reply.headers["X-Request-ID"]}


def test_a_scan_s_lines_carry_the_request(conversation_id, lines):
    Conversation.objects.filter(pk=conversation_id).update(total_tokens=0)
    scan_id = (
        Api(an_api_key())
        .post(f"conversations/{conversation_id}/integrity-reports/", {"background": True})
        .body["scan_id"]
    )

    scan_tasks.scan_conversations.call_local(scan_id=scan_id, request_id="of-a-test")

    [failed] = lines.called("integrity_failed")
    assert (failed["request_id"], failed["scan_id"]) == ("of-a-test", scan_id)
