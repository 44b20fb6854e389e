"""Logs: machines can read them, and no message's text is in them."""

import json
import logging
import logging.config
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from django.db import IntegrityError, connection
from django.http import HttpResponse
from django.test import RequestFactory

from lcmsite.middleware import RequestLog
from lcmsite.ops.logs import discreet_exception, logging_settings
from tests.factories import a_conversation
from tests.lcmsite.callers import lcm
from tests.lcmsite.operating import run_python

SCRIPT = """
import logging, logging.config, sys
from lcmsite.ops.logs import logging_settings, set_up_loggers
set_up_loggers()
logging.config.dictConfig(logging_settings(level="INFO", format=sys.argv[1]))
import structlog
with structlog.contextvars.bound_contextvars(conversation_id=7):
    structlog.get_logger("ours").info("compacted", token_before=900, token_after=300)
    logging.getLogger("theirs").warning("slow %s", "answer")
    structlog.get_logger("ours").debug("not shown")
"""


def logged(format: str) -> list[str]:
    return run_python("-c", SCRIPT, format).stderr.splitlines()


def test_each_line_is_one_json_object_with_its_context():
    ours, theirs = (json.loads(line) for line in logged("json"))

    assert (ours["event"], ours["conversation_id"], ours["token_after"]) == ("compacted", 7, 300)
    assert (theirs["event"], theirs["level"], theirs["conversation_id"]) == ("slow answer", "warning", 7)
    assert ours["timestamp"].endswith("Z")


@pytest.mark.thorough
def test_a_terminal_gets_readable_lines_and_anything_else_json():
    assert "compacted" in logged("console")[0]
    assert not logged("console")[0].startswith("{")
    assert logged("auto")[0].startswith("{")


def written(event, *, times=1):
    made = logging.config.DictConfigurator(logging_settings(level="INFO", format="json"))
    formatter = made.configure_formatter(made.config["formatters"]["lcm"])
    record = logging.makeLogRecord({"levelname": "INFO", "msg": event, "_logger": logging.getLogger(), "_name": "info"})
    return [formatter.format(record) for _ in range(times)]


def test_two_handlers_write_the_same_line_of_one_record():
    event = {"event": "compacted", "token_after": 300}

    lines = written(event, times=2)

    assert [json.loads(line) for line in lines] == [event, event]


@pytest.mark.parametrize("said", ["plain", "déjà vu 你 \U0001f600", "half a pair \ud83d", 2**70])
def test_a_line_is_json_in_ascii_whatever_it_says(said):
    [line] = written({"event": "failed", "said": said, "at": Path("a/b")})

    assert line.isascii()
    assert json.loads(line) == {"event": "failed", "said": said, "at": "a/b"}


@pytest.mark.django_db
def test_an_exception_is_logged_without_the_row_that_it_quotes():
    plan = "-".join(["my", "secret", "plan"])
    try:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMP TABLE words (word text CHECK (word = ''))")
            cursor.execute("INSERT INTO words VALUES (%s)", [plan])
    except IntegrityError as error:
        quoted, event = str(error), discreet_exception(None, "error", {"event": "failed", "exc_info": error})

    assert plan in quoted
    assert plan not in event["exception"]
    assert "words_word_check" in event["exception"]
    assert "test_logs.py" in event["exception"]


def test_an_exception_is_logged_with_what_led_to_it():
    try:
        try:
            int("x")
        except ValueError as first:
            raise LookupError("second") from first
    except LookupError:
        event = discreet_exception(None, "error", {"event": "failed", "exc_info": True})

    assert "builtins.ValueError: invalid literal" in event["exception"]
    assert event["exception"].endswith("builtins.LookupError: second\n")


def test_a_request_is_logged_with_its_id_and_without_what_was_searched_for():
    request = RequestFactory().get("/api/v1/matches/", {"query": "my secret plan"})

    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
        response = RequestLog(lambda request: HttpResponse(status=404))(request)

    [line] = logs
    assert (line["request"], line["code"], line["log_level"]) == ("GET /api/v1/matches/", 404, "warning")
    assert line["request_id"] == response["X-Request-ID"]


def test_statements_are_not_logged_even_when_everything_else_is():
    loggers = logging_settings(level="DEBUG", format="json")["loggers"]

    assert loggers["django.db.backends"]["level"] == "WARNING"
    assert loggers["httpx2"]["level"] == loggers["httpcore2"]["level"] == "WARNING"
    assert logging.getLogger("django.db.backends").isEnabledFor(logging.DEBUG) is False


@pytest.mark.django_db
def test_a_verb_of_the_command_line_logs_warnings_only_unless_the_log_was_set(settings, caplog):
    def logged_by_a_compaction() -> list[str]:
        conversation = a_conversation(*("a turn about the harbour and its boats " * 40 for _ in range(40)))
        caplog.clear()
        assert lcm("compact", str(conversation.conversation_id)).exit_code == 0
        return [record.levelname for record in caplog.records if record.name.startswith("compaction")]

    by_default = logged_by_a_compaction()
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, log_format="console")

    assert by_default == []
    assert "INFO" in logged_by_a_compaction()
