"""The errors of all interfaces: REST, MCP and the command line.

LcmError
├── Invalid           the request is malformed, or a value is not allowed
│   └── TooLarge         the request or a value exceeds a size limit
├── Unauthenticated   no key, or one that is unknown, expired or revoked
├── Forbidden         the key lacks the scope
├── NotFound          it does not exist, or the caller may not see it
├── Conflict          the request contradicts stored data; retryable if the data may change by itself
│   ├── ConversationBusy   another compaction of the conversation is running
│   └── StaleHead          the conversation's head is not where the caller expects it
└── Unavailable       a dependency (storage, model) fails; retryable
"""

from __future__ import annotations

from typing import Any


class LcmError(Exception):
    """Base of all errors: a code, a message, and whether a retry may succeed."""

    code = "error"
    retryable = False

    def __init__(self, detail: str, *, code: str | None = None, **context: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.context = context


class Invalid(LcmError):
    code = "invalid"


class TooLarge(Invalid):
    code = "too_large"


class Unauthenticated(LcmError):
    code = "unauthenticated"


class Forbidden(LcmError):
    code = "forbidden"


class NotFound(LcmError):
    code = "not_found"


class Conflict(LcmError):
    code = "conflict"


class ConversationBusy(Conflict):
    code = "conversation_busy"
    retryable = True


class StaleHead(Conflict):
    """The head is not at the expected seq; `head_seq` in `context` is its seq."""

    code = "stale_head"


class Unavailable(LcmError):
    code = "unavailable"
    retryable = True


def param_error(name: str, sentence: str) -> Invalid:
    """Build the error for one parameter, in the form of a validation error."""
    return Invalid(f"{name}: {sentence}", code="invalid_params", errors={name: [sentence]})
