"""The two protocols of vendors: build requests, read replies and failures. Pure.

The messages of failures never quote the answer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from compaction.llm.types import (
    BadAnswer,
    ContextLength,
    Denied,
    Endpoint,
    HttpRequest,
    ModelFailed,
    Prompt,
    Protocol,
    RateLimited,
    Refused,
    Reply,
    TemperatureRefused,
    Unreachable,
    Usage,
)

# The longest wait that a vendor can ask for; a longer one is most likely a mistake.
LONGEST_RETRY_AFTER_SECONDS = 3600.0

_CHAT_PATH = "/chat/completions"
# Hosts where newer models refuse `max_tokens` and want `max_completion_tokens`, which few other servers know.
_NEW_LIMIT_AT = ("api.openai.com", ".openai.azure.com")

_ANTHROPIC_PATH = "/v1/messages"
_ANTHROPIC_VERSION = "2023-06-01"

# The vendors' stop reasons of incomplete answers.
_CUT = {
    "length": "the answer was cut at the limit of output tokens",
    "max_tokens": "the answer was cut at the limit of output tokens",
    "content_filter": "the vendor withheld the answer",
    "refusal": "the vendor withheld the answer",
    "pause_turn": "the answer was paused before its end",
    "tool_use": "the answer calls a tool, and there is none",
}

# How vendors and servers for open models report that a prompt is too long. They share no error code, so the messages
# of error responses are matched, too; a model's text is never matched.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|request_too_large|string_above_max_length"
    r"|maximum context length|maximum model length|context (?:length|window|size)[^.]{0,60}exceed"
    r"|exceed[^.]{0,65}(?:context|maximum number of (?:input )?tokens|max_model_len|input limit)"
    r"|prompt is too long|input is too long|too many (?:input )?tokens|context length of only"
    r"|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE,
)
# The limit per minute is below the size of this request: waiting does not help, but a shorter prompt does.
_LARGER_THAN_THE_LIMIT = re.compile(r"request too large", re.IGNORECASE)

# Maximum number of bytes that are read of an error page.
_MOST_READ = 20_000
_TOO_MANY = 429
_DENIED = frozenset({401, 403, 404, 407})
_TOO_LARGE = 413
# The statuses for a parameter that a server does not accept.
_INVALID = frozenset({400, 422})


def request_of(endpoint: Endpoint, prompt: Prompt) -> HttpRequest:
    """Build the request for a prompt, in the endpoint's protocol."""
    build = _anthropic_request if endpoint.protocol is Protocol.ANTHROPIC else _chat_request
    url, headers, body = build(endpoint, prompt)
    return HttpRequest(url=url, headers={"content-type": "application/json", **headers}, body=json.dumps(body).encode())


def reply_of(endpoint: Endpoint, body: bytes) -> Reply:
    """Parse a reply, without its reasoning; raises BadAnswer if it is cut or missing."""
    payload = read_json(body)
    read = _anthropic_reply if endpoint.protocol is Protocol.ANTHROPIC else _chat_reply
    content, stop, usage = read(payload)
    if content is _NO_REPLY:
        failure = _error_in(payload)
        raise failure if failure is not None else BadAnswer("the answer is not in the protocol", usage=usage)
    if stop == "model_context_window_exceeded":
        raise ContextLength("the prompt leaves no room for the answer", usage=usage)
    if isinstance(stop, str) and stop in _CUT:
        raise BadAnswer(_CUT[stop], usage=usage)
    text = _text(content)
    if not text.strip():
        raise BadAnswer("the answer holds no text", usage=usage)
    return Reply(text=text, model=_model_name(payload, endpoint.model), usage=usage)


_NO_REPLY = object()
Request = tuple[str, dict[str, str], dict[str, Any]]


def _chat_request(endpoint: Endpoint, prompt: Prompt) -> Request:
    """Build a request for chat completions; the base URL usually ends in /v1."""
    base = endpoint.base_url.rstrip("/")
    host = urlsplit(base).hostname or ""
    limit = "max_completion_tokens" if host.endswith(_NEW_LIMIT_AT) else "max_tokens"
    body = {
        "model": endpoint.model,
        "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
        limit: endpoint.max_output_tokens,
        "stream": False,
        **_temperature(prompt),
    }
    headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    return base if base.endswith(_CHAT_PATH) else base + _CHAT_PATH, headers, body


def _temperature(prompt: Prompt) -> dict[str, float]:
    return {} if prompt.temperature is None else {"temperature": prompt.temperature}


def _chat_reply(payload: dict[str, Any]) -> tuple[Any, Any, Usage]:
    usage = Usage(
        tokens_in=count_in(payload.get("usage"), "prompt_tokens", "input_tokens"),
        tokens_out=count_in(payload.get("usage"), "completion_tokens", "output_tokens"),
    )
    choices = payload.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        return _NO_REPLY, None, usage
    return message.get("content"), choice.get("finish_reason"), usage


def _anthropic_request(endpoint: Endpoint, prompt: Prompt) -> Request:
    """Build a request for Anthropic's messages; the base URL may end in /v1 or not."""
    base = endpoint.base_url.rstrip("/").removesuffix(_ANTHROPIC_PATH).removesuffix("/v1")
    body = {
        "model": endpoint.model,
        "max_tokens": endpoint.max_output_tokens,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
        **_temperature(prompt),
    }
    headers = {"anthropic-version": _ANTHROPIC_VERSION}
    if endpoint.key:
        headers["x-api-key"] = endpoint.key
    return base + _ANTHROPIC_PATH, headers, body


def _anthropic_reply(payload: dict[str, Any]) -> tuple[Any, Any, Usage]:
    counts = payload.get("usage")
    # Tokens that the vendor's prompt cache read or stored are input, too.
    read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    usage = Usage(sum(count_in(counts, name) for name in read), count_in(counts, "output_tokens"))
    blocks = payload.get("content")
    return blocks if isinstance(blocks, list) else _NO_REPLY, payload.get("stop_reason"), usage


def _text(content: Any) -> str:
    """Return the text of an answer, a string or text parts, without reasoning."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if part.get("type", "text") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def read_json(body: bytes) -> dict[str, Any]:
    """Parse a response as a JSON object; raises BadAnswer if it is none."""
    if not body.strip():
        raise BadAnswer("the answer is empty")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        # Raised outside of the handler, so that no error that quotes the response is chained to this one.
        raise BadAnswer("the answer is not a JSON object")
    return value


def failure_of(
    *, status: int, body: bytes, headers: Mapping[str, str] | None = None, now: float = 0.0
) -> ModelFailed | None:
    """Return the failure in an HTTP response, or None; `now` is the time in seconds."""
    if 200 <= status < 300:
        return None
    text = body[:_MOST_READ].decode(errors="replace")
    retry_after = _seconds_to_wait(headers or {}, now=now)
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
    if status in _INVALID and "temperature" in text.lower():
        return TemperatureRefused("the vendor refuses the temperature", status=status)
    return Refused("the vendor refuses the request", status=status)


def _error_in(payload: Mapping[str, Any]) -> ModelFailed | None:
    """Return the failure in a response of status 200, as some routers send it."""
    error = payload.get("error")
    if not error:
        return None
    code = error.get("code") if isinstance(error, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 400
    return failure_of(status=status, body=json.dumps(error, default=str).encode())


def _seconds_to_wait(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds of Retry-After (seconds or a date), at most an hour.

    None if unusable.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _moment(value)
        # Measured by the server's clock, if the response has a Date.
        since = _moment(headers.get("date", ""))
        if until is None:
            return None
        seconds = until - (now if since is None else since)
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER_SECONDS) if math.isfinite(seconds) else None


def _moment(written: str) -> float | None:
    try:
        moment = parsedate_to_datetime(written)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    # HTTP dates are in UTC even where they do not say so.
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def count_in(usage: object, *names: str) -> int:
    """Return the first of these counts that a vendor reports, or 0."""
    if not isinstance(usage, Mapping):
        return 0
    for name in names:
        value = usage.get(name)
        # The count must fit into a column; an absurd one is ignored.
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9:
            return value
    return 0


def _model_name(payload: Mapping[str, Any], otherwise: str) -> str:
    """Return the model that the response names, cut to fit; else `otherwise`."""
    name = payload.get("model")
    if not isinstance(name, str) or not name.isprintable() or not name.strip():
        return otherwise
    return name.strip()[:200]
