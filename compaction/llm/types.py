"""Endpoints, prompts, replies and failures of language models; no repr has a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar
from urllib.parse import urlsplit


class Protocol(StrEnum):
    """The two protocols of nearly all vendors and servers for open models."""

    CHAT = "chat"
    ANTHROPIC = "anthropic"


class CallOutcome(StrEnum):
    """How one HTTP call ended, for counting."""

    ANSWERED = "answered"
    UNREACHABLE = "unreachable"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"
    DENIED = "denied"
    BAD_ANSWER = "bad_answer"
    CONTEXT_LENGTH = "context_length"
    LEAKED = "leaked"


class NotCalled(StrEnum):
    """Why a call was not made."""

    MISCONFIGURED = "misconfigured"
    BREAKER_OPEN = "breaker_open"
    SPEND_EXHAUSTED = "spend_exhausted"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One model at one URL; raises ValueError, not quoting the key, if invalid.

    `timeout_seconds` is for one call, from the DNS lookup to the last byte. `max_output_tokens` includes the reasoning
    of a model.
    """

    name: str
    protocol: Protocol
    base_url: str
    model: str
    key: str = field(repr=False)
    timeout_seconds: float
    max_output_tokens: int
    attempts: int

    def __post_init__(self) -> None:
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"The base URL of {self.name!r} must begin with http:// or https:// and name a host.")
        if url.username is not None or url.password is not None or url.query or url.fragment:
            raise ValueError(f"The base URL of {self.name!r} must have no user, password, query or fragment.")
        if any(not "!" <= character <= "~" for character in self.key):
            # As a header it would fail later, with an error of the HTTP library that quotes it.
            raise ValueError(f"The key of {self.name!r} holds a blank, a line break or a character beyond ASCII.")


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt: `envelope` is the tag around the reply, `hash` that of the templates.

    Without a `temperature` the model's own default applies.
    """

    system: str = field(repr=False)
    user: str = field(repr=False)
    envelope: str = field(default="", repr=False)
    hash: str = ""
    temperature: float | None = None


@dataclass(frozen=True)
class Usage:
    """The tokens of a call: the vendor's own count, or an estimate."""

    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A complete answer, not checked yet; `model` is the name that the server gives."""

    text: str = field(repr=False)
    model: str
    usage: Usage = Usage()


@dataclass(frozen=True)
class HttpRequest:
    """One request, ready to be sent."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class ModelFailed(Exception):
    """A call gave no usable answer; `detail` quotes no key, no prompt and no answer.

    If the call was not made, `retry_at` says when it may be, if known.
    """

    reason: ClassVar[CallOutcome | NotCalled]
    # Whether the same call may succeed a little later.
    is_transient: ClassVar[bool] = False

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        retry_at: datetime | None = None,
        usage: Usage | None = None,
    ) -> None:
        at = f" (HTTP {status})" if status is not None else ""
        super().__init__(f"{self.reason.value}: {detail}{at}")
        self.detail = detail
        self.status = status
        self.retry_after = retry_after
        self.retry_at = retry_at
        self.usage = usage or Usage()


class Unreachable(ModelFailed):
    """No answer in time, a broken connection, or a fault of the vendor (5xx)."""

    reason = CallOutcome.UNREACHABLE
    is_transient = True


class RateLimited(ModelFailed):
    """Too many calls (429); `retry_after` is the vendor's value in seconds."""

    reason = CallOutcome.RATE_LIMITED
    is_transient = True


class Refused(ModelFailed):
    """The vendor rejects this request for what it contains; a retry cannot help."""

    reason = CallOutcome.REFUSED


class TemperatureRefused(Refused):
    """The vendor rejects a request, and the error mentions the temperature."""


class Denied(Refused):
    """The vendor rejects all requests: the key, model or address is wrong."""

    reason = CallOutcome.DENIED


class BadAnswer(ModelFailed):
    """There was an answer, but it is empty, cut off, or not in the protocol."""

    reason = CallOutcome.BAD_ANSWER


class Leaked(ModelFailed):
    """The answer holds a secret of this site; it is stored nowhere."""

    reason = CallOutcome.LEAKED


class ContextLength(ModelFailed):
    """The prompt is longer than the model's context window; a shorter one may fit."""

    reason = CallOutcome.CONTEXT_LENGTH


class Misconfigured(ModelFailed):
    """A setting or key is missing or invalid; `detail` names the setting."""

    reason = NotCalled.MISCONFIGURED


class BreakerOpen(ModelFailed):
    """The model failed too often: calls pause, or one is probing it."""

    reason = NotCalled.BREAKER_OPEN


class SpendExhausted(ModelFailed):
    """The calls or the tokens of this window are spent."""

    reason = NotCalled.SPEND_EXHAUSTED


class BreakerState(StrEnum):
    """Whether a model is called: closed, open, or one call is probing it."""

    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"


@dataclass(frozen=True)
class EndpointRecord:
    """One language model: its circuit breaker, calls and cost; never its API key."""

    name: str
    protocol: str
    host: str
    model: str
    is_configured: bool
    state: BreakerState
    # While the breaker is open: when a call may probe the model.
    open_until: datetime | None
    consecutive_failures: int
    last_failure: str
    last_failure_at: datetime | None
    last_success_at: datetime | None
    # Whether the model refused a temperature; it is called without one then.
    refuses_temperature: bool
    # Used in the current window, and its limits; absent for no limit.
    window_ends_at: datetime | None
    window_calls: int
    window_calls_limit: int | None
    window_tokens: int
    window_tokens_limit: int | None
    # In all, since the model was first called.
    calls: int
    failures: int
    tokens_in: int
    tokens_out: int
    # At the prices that are configured now; absent if there are none.
    cost: float | None
