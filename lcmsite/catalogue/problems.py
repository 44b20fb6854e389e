"""Turn errors into problems, with HTTP status and exit code from one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestDataTooBig, SuspiciousOperation
from django.db import DataError, Error, IntegrityError, InterfaceError, OperationalError
from django.db.migrations.exceptions import MigrationSchemaMissing
from django.http import Http404
from rest_framework import exceptions as rest

from conversations.errors import (
    Conflict,
    Forbidden,
    Invalid,
    LcmError,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from lcmsite.access.keys import CHALLENGE
from lcmsite.api.concurrency import TooManyAtOnce
from lcmsite.api.throttling import TooManyRequests


class MethodNotAllowed(Invalid):
    code = "method_not_allowed"


class LengthRequired(Invalid):
    code = "length_required"


class RequestTooLarge(TooLarge):
    code = "request_too_large"


class UnsupportedMediaType(Invalid):
    code = "unsupported_media_type"


class RequestTimeout(LcmError):
    """The client took too long to send its request."""

    code = "request_timeout"
    retryable = True


class AddressTooLong(Invalid):
    code = "address_too_long"


class HeadersTooLarge(Invalid):
    code = "headers_too_large"


class Busy(Unavailable):
    """Too many requests are already waiting."""

    code = "busy"


class NoSuchRange(Invalid):
    """The range begins after the end of the file; gives the size, to continue there."""

    code = "no_such_range"

    def __init__(self, detail: str, *, file_size: int) -> None:
        super().__init__(detail)
        self.file_size = file_size


class Contention(Conflict):
    """The database aborted this transaction: a deadlock, or a serialization failure."""

    code = "contention"
    retryable = True


@dataclass(frozen=True)
class Kind:
    """Status and exit code of an error class, and of subclasses that are not listed."""

    error: type[LcmError]
    status: int
    exit_code: int
    meaning: str
    retry_after: int = 1


KINDS = (
    Kind(Invalid, 400, 2, "bad input"),
    Kind(Unauthenticated, 401, 5, "no key, or a wrong, expired or revoked one"),
    Kind(Forbidden, 403, 5, "the key may not do this"),
    Kind(NotFound, 404, 3, "it does not exist, or you may not see it"),
    Kind(MethodNotAllowed, 405, 2, "the path has no operation for this HTTP method"),
    Kind(RequestTimeout, 408, 6, "the client sent the request too slowly"),
    Kind(Conflict, 409, 4, "it contradicts what is stored, or another process is working on it"),
    Kind(LengthRequired, 411, 2, "the request has no Content-Length"),
    Kind(TooLarge, 413, 2, "the request, or the file, is too large"),
    Kind(AddressTooLong, 414, 2, "the address of the request is too long"),
    Kind(UnsupportedMediaType, 415, 2, "the body is not JSON"),
    Kind(NoSuchRange, 416, 2, "the file ends before the range begins"),
    Kind(TooManyRequests, 429, 6, "the key has reached its rate limit (LCM_RATE_LIMIT)"),
    Kind(HeadersTooLarge, 431, 2, "the headers of the request are too large"),
    Kind(Busy, 503, 6, "too many requests are already waiting"),
    Kind(TooManyAtOnce, 429, 6, "too many operations run at once: in all, of this caller, or heavy ones"),
    Kind(Unavailable, 503, 6, "something that LCM depends on does not respond", retry_after=5),
)
_BY_ERROR = {kind.error: kind for kind in KINDS}

FINDINGS_EXIT_CODE = 1
INTERNAL_EXIT_CODE = 70
INTERRUPTED_EXIT_CODE = 130
EXIT_CODES: Mapping[int, str] = {
    0: "done",
    FINDINGS_EXIT_CODE: "done, but with findings, failures or refused files",
    2: "bad input",
    3: "not found",
    4: "conflict; try again if the problem says that it is retryable",
    5: "forbidden or not authenticated",
    6: "unavailable, such as a database that does not respond",
    INTERNAL_EXIT_CODE: "an error of LCM itself",
    INTERRUPTED_EXIT_CODE: "stopped by Ctrl-C before it was done",
}


@dataclass(frozen=True)
class Problem:
    """A refusal as every interface reports it."""

    code: str
    detail: str
    retryable: bool
    status: int
    exit_code: int = INTERNAL_EXIT_CODE
    context: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The fields that callers see."""
        context = dict(self.context)
        shown = {"code": self.code, "detail": self.detail, "retryable": self.retryable, "status": self.status}
        beside = {"errors": context.pop("errors", None), "context": context}
        return shown | {name: value for name, value in beside.items() if value}


INTERNAL = Problem(code="internal", detail="An error of LCM; its log has the details.", retryable=False, status=500)


def problem_of(error: BaseException) -> Problem:
    """The error as a problem; INTERNAL for an unexpected one."""
    known = _as_lcm_error(error)
    if known is None:
        return INTERNAL
    kind = next(_BY_ERROR[base] for base in type(known).__mro__ if base in _BY_ERROR)
    return Problem(
        code=known.code,
        detail=known.detail,
        retryable=known.retryable,
        status=kind.status,
        exit_code=kind.exit_code,
        context=known.context,
        headers=_headers_of(known, retry_after=kind.retry_after),
    )


def _headers_of(error: LcmError, *, retry_after: int) -> Mapping[str, str]:
    headers = {"Retry-After": str(retry_after)} if error.retryable else {}
    match error:
        case Unauthenticated():
            headers["WWW-Authenticate"] = CHALLENGE
        case TooManyRequests(allowance=allowance):
            headers |= {**allowance.headers, "Retry-After": str(allowance.reset)}
        case NoSuchRange(file_size=size):
            headers["Content-Range"] = f"bytes */{size}"
        case RequestTimeout() | HeadersTooLarge() | AddressTooLong():
            headers["Connection"] = "close"
    return headers


def _as_lcm_error(error: BaseException) -> LcmError | None:
    match error:
        case LcmError():
            return error
        case Error() | psycopg.Error():
            return _database_error(error)
        case Http404() | rest.NotFound():
            return NotFound("There is nothing at this path.")
        case rest.MethodNotAllowed():
            return MethodNotAllowed(str(error.detail))
        case rest.UnsupportedMediaType():
            return UnsupportedMediaType("The body must be JSON, sent as Content-Type: application/json.")
        case RequestDataTooBig():
            return RequestTooLarge("The request body is larger than LCM_MAX_REQUEST_BYTES allows.")
        case DisallowedHost():
            return Invalid("The host name of the request is not among LCM_ALLOWED_HOSTS.", code="unknown_host")
        case SuspiciousOperation() | rest.APIException():
            return Invalid("LCM cannot parse this request: check its headers, its path and its query.")
        case RecursionError():
            return Invalid("The JSON is nested too deeply.", code="nested_too_deeply")
        case _:
            return None


def _read_only_error() -> LcmError:
    if settings.EMBEDDED_DATABASE:
        return Unavailable(
            "The disk is nearly full, so writes are refused and nothing was changed. Free disk space.",
            code="disk_full",
        )
    return Unavailable("The database accepts no writes now: it is a standby, or was made read-only. Try again later.")


def _database_error(error: BaseException) -> LcmError | None:
    # Django's error wraps psycopg's, whose class tells PostgreSQL's error code.
    match error.__cause__ if isinstance(error, Error) and error.__cause__ else error:
        case psycopg.errors.DeadlockDetected() | psycopg.errors.SerializationFailure():
            return Contention("Another request was writing the same rows; nothing was changed. Try again.")
        case (
            psycopg.errors.QueryCanceled()
            | psycopg.errors.TransactionTimeout()
            | psycopg.errors.IdleInTransactionSessionTimeout()
        ):
            return Unavailable("The database took too long for this request. Try again later.", code="timeout")
        case psycopg.errors.DiskFull():
            return Unavailable("The database's disk is full; nothing was changed. Free disk space.", code="disk_full")
        case psycopg.errors.ReadOnlySqlTransaction():
            return _read_only_error()
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedFunction():
            return Unavailable(
                "The database is not set up for this version of LCM. Run `lcm migrate`, or set LCM_DATA_DIR or "
                "LCM_DATABASE_URL to another database."
            )
        case psycopg.errors.InsufficientPrivilege() | MigrationSchemaMissing():
            return Unavailable("LCM's database user lacks a privilege for this; it must own LCM's tables.")
    match error:
        case DataError() | psycopg.DataError():
            return Invalid("The database cannot store one of these values.")
        case IntegrityError() | psycopg.IntegrityError():
            return Conflict("This contradicts stored data; nothing was changed. Read the data again.")
        case OperationalError() | InterfaceError() | psycopg.OperationalError() | psycopg.InterfaceError():
            return Unavailable("The database does not respond. Try again later.")
        case _:
            return None
