"""Read the failure in an HTTP answer. Pure; it never quotes the answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from compaction.llm.types import (
    BadAnswer,
    ContextLength,
    Denied,
    ModelFailed,
    RateLimited,
    Refused,
    Unreachable,
)

# How vendors and servers for open models say that a prompt is too long. They agree on no code, so what they write is
# read as well; it is looked for in error answers only, never in a model's text.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|request_too_large|string_above_max_length"
    r"|maximum context length|maximum model length|context (?:length|window|size)[^.]{0,60}exceed"
    r"|exceed\w*[^.]{0,60}(?:context|maximum number of (?:input )?tokens|max_model_len|input limit)"
    r"|prompt is too long|input is too long|too many (?:input )?tokens|context length of only"
    r"|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE,
)
# A limit per minute below the size of this very request: waiting does not help, a shorter prompt does.
_LARGER_THAN_THE_LIMIT = re.compile(r"request too large", re.IGNORECASE)

# An error page is read no farther than this.
_MOST_READ = 20_000
_TOO_MANY = 429
_DENIED = frozenset({401, 403, 404, 407})
_TOO_LARGE = 413


def read_json(body: bytes) -> dict[str, Any]:
    """The object that an answer consists of; BadAnswer if it is none."""
    if not body.strip():
        raise BadAnswer("the answer is empty")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        # Raised out here, so that no error that quotes the answer hangs on this one.
        raise BadAnswer("the answer is not a JSON object")
    return value


def failure_of(
    *, status: int, body: bytes, headers: Mapping[str, str] | None = None, now: float = 0.0
) -> ModelFailed | None:
    """The failure in an HTTP answer, or None; `now` is the time in seconds."""
    if 200 <= status < 300:
        return None
    text = body[:_MOST_READ].decode(errors="replace")
    retry_after = seconds_to_wait(headers or {}, now=now)
    if status == _TOO_LARGE or (400 <= status < 500 and status != _TOO_MANY and _TOO_LONG.search(text)):
        return ContextLength("the prompt is longer than the model takes", status=status)
    if status == _TOO_MANY:
        if _LARGER_THAN_THE_LIMIT.search(text):
            return ContextLength("the prompt is larger than the limit on tokens", status=status)
        return RateLimited("too many calls", status=status, retry_after=retry_after)
    if status >= 500:
        return Unreachable("the vendor has a fault", status=status, retry_after=retry_after)
    if 300 <= status < 400:
        return Denied("the endpoint leads elsewhere, and redirects are not followed", status=status)
    if status in _DENIED:
        return Denied("the vendor knows no such key, model or address", status=status)
    return Refused("the vendor refuses the request", status=status)


def error_in(payload: Mapping[str, Any]) -> ModelFailed | None:
    """The failure in an answer of status 200, as some routers send it."""
    error = payload.get("error")
    if not error:
        return None
    code = error.get("code") if isinstance(error, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 400
    return failure_of(status=status, body=json.dumps(error, default=str).encode())


def seconds_to_wait(headers: Mapping[str, str], *, now: float) -> float | None:
    """The seconds of Retry-After, given as seconds or a date; None if unusable."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _moment(value)
        # By the clock of the one who asks, where it tells its own.
        since = _moment(headers.get("date", ""))
        if until is None:
            return None
        seconds = until - (now if since is None else since)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _moment(written: str) -> float | None:
    try:
        moment = parsedate_to_datetime(written)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    # HTTP dates are in UTC even where they do not say so.
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def count_in(usage: object, *names: str) -> int:
    """The first of these counts that a vendor reports, or 0."""
    if not isinstance(usage, Mapping):
        return 0
    for name in names:
        value = usage.get(name)
        # A column has to hold it, so a vendor's nonsense is nothing.
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9:
            return value
    return 0


def model_name(payload: Mapping[str, Any], otherwise: str) -> str:
    """The model that says it answered, in a form that a row can hold."""
    name = payload.get("model")
    if not isinstance(name, str) or not name.isprintable() or not name.strip():
        return otherwise
    return name.strip()[:200]
