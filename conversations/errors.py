"""The errors of every face: REST, MCP and the command line.

LcmError
├── Invalid           the request cannot be right as it stands
│   └── TooLarge         there is more of it than is taken
├── Unauthenticated   no key, or one that is unknown, expired or revoked
├── Forbidden         the key lacks the scope
├── NotFound          no such thing, or none that the caller may see
├── Conflict          it would contradict what is stored; retryable where time may cure it
│   ├── ConversationBusy   another compaction of the conversation is at work
│   └── StaleHead          the conversation's head is not where the caller expects it
└── Unavailable       something we depend on does not answer; retryable
"""

from __future__ import annotations

from typing import Any


class LcmError(Exception):
    """A refusal with a code, a sentence, and whether to try again."""

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
    """The head of the conversation is elsewhere: see `head_seq` in the context."""

    code = "stale_head"


class Unavailable(LcmError):
    code = "unavailable"
    retryable = True
