"""One shape for all refusals, and one table for what they look like outside."""

import psycopg
import pytest
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DataError, IntegrityError, OperationalError, connection, transaction
from django.db.migrations.exceptions import MigrationSchemaMissing
from django.http import Http404
from psycopg_pool import PoolTimeout
from rest_framework import exceptions as rest

from conversations.cold_storage.cold_texts import ColdBlockDamaged
from conversations.errors import Conflict, ConversationBusy, Forbidden, Invalid, NotFound, Unauthenticated, Unavailable
from conversations.ledger.restoring import ParentNotThere
from lcmsite.api.responses import problem_response
from lcmsite.api.throttling import Allowance, TooManyRequests
from lcmsite.catalogue.problems import EXIT_CODES, INTERNAL, Contention, NoSuchRange, problem_of
from tests.frozen.error_codes import all_errors


@pytest.mark.parametrize(
    ("error", "code", "status", "exit_code", "retryable"),
    [
        (Invalid("no"), "invalid", 400, 2, False),
        (Invalid("no", code="bad_cursor"), "bad_cursor", 400, 2, False),
        (Unauthenticated("no", code="key_expired"), "key_expired", 401, 5, False),
        (Forbidden("no"), "forbidden", 403, 5, False),
        (NotFound("no"), "not_found", 404, 3, False),
        (Conflict("no"), "conflict", 409, 4, False),
        (ConversationBusy("no"), "conversation_busy", 409, 4, True),
        (Contention("no"), "contention", 409, 4, True),
        (Unavailable("no"), "unavailable", 503, 6, True),
        (Http404(), "not_found", 404, 3, False),
        (rest.MethodNotAllowed("PATCH"), "method_not_allowed", 405, 2, False),
        (rest.UnsupportedMediaType("text/csv"), "unsupported_media_type", 415, 2, False),
        (RequestDataTooBig(), "request_too_large", 413, 2, False),
        (TooManyRequests(Allowance(60, 0, 60)), "rate_limited", 429, 6, True),
        (SuspiciousOperation(), "invalid", 400, 2, False),
        (RecursionError(), "nested_too_deeply", 400, 2, False),
        (DataError(), "invalid", 400, 2, False),
        (IntegrityError(), "conflict", 409, 4, False),
        (OperationalError(), "unavailable", 503, 6, True),
        (PoolTimeout(), "unavailable", 503, 6, True),
        (psycopg.errors.DeadlockDetected(), "contention", 409, 4, True),
        (psycopg.errors.QueryCanceled(), "timeout", 503, 6, True),
        (psycopg.errors.TransactionTimeout(), "timeout", 503, 6, True),
        (psycopg.errors.IdleInTransactionSessionTimeout(), "timeout", 503, 6, True),
        (psycopg.errors.DiskFull(), "disk_full", 503, 6, True),
        (psycopg.errors.UndefinedTable(), "unavailable", 503, 6, True),
        (psycopg.errors.InsufficientPrivilege(), "unavailable", 503, 6, True),
        (MigrationSchemaMissing(), "unavailable", 503, 6, True),
    ],
)
def test_every_error_has_a_code_a_status_and_an_exit_status(error, code, status, exit_code, retryable):
    problem = problem_of(error)

    assert (problem.code, problem.status, problem.exit_code, problem.retryable) == (code, status, exit_code, retryable)
    assert problem.detail


def test_what_nobody_foresaw_is_told_without_its_text():
    problem = problem_of(ValueError("the password is swordfish"))

    assert problem is INTERNAL
    assert "swordfish" not in str(problem.as_json())


def test_a_problem_has_one_shape():
    told = problem_of(Invalid("no", code="invalid_params", errors={"limit": ["Too small."]}, seen=3)).as_json()

    assert told == {
        "code": "invalid_params",
        "detail": "no",
        "retryable": False,
        "status": 400,
        "errors": {"limit": ["Too small."]},
        "context": {"seen": 3},
    }


def test_whatever_may_be_tried_again_says_when():
    response = problem_response(Unavailable("no"))

    assert int(response["Retry-After"]) > 0
    assert "Retry-After" not in problem_response(Invalid("no"))


def test_every_refusal_that_a_service_may_raise_has_its_line():
    # Some say by themselves what they refuse.
    made = {
        ColdBlockDamaged: ColdBlockDamaged(1, "It is short."),
        ParentNotThere: ParentNotThere("child", "parent"),
        NoSuchRange: NoSuchRange("It is short.", file_size=1),
        TooManyRequests: TooManyRequests(Allowance(limit=1, remaining=0, reset=1)),
    }
    for error in all_errors():
        problem = problem_of(made.get(error) or error("no"))

        assert problem.code == error.code
        assert 400 <= problem.status < 600
        assert problem.retryable is error.retryable
        assert problem.exit_code in EXIT_CODES


@pytest.mark.django_db
def test_a_refusal_of_the_database_is_understood_through_django():
    with pytest.raises(DataError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")

    assert problem_of(refused.value).code == "invalid"


@pytest.mark.django_db
def test_a_database_without_tables_says_what_to_do():
    with pytest.raises(Exception, match="nowhere") as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM nowhere")

    assert "lcm migrate" in problem_of(refused.value).detail
