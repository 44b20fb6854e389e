"""The records of delegated reading: grants, answers and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from conversations.errors import Forbidden
from conversations.types import Role
from retrieval.types import ItemKind

# The maximum number of levels that a grant reaches below the items that it names.
DEEPEST = 3
# A grant with fewer remaining tokens counts as used up, because a result would be too small to be useful.
LEAST_ROOM = 32


class GrantExpired(Forbidden):
    """The grant has expired."""

    code = "grant_expired"


class GrantRevoked(Forbidden):
    """The grant was revoked."""

    code = "grant_revoked"


class GrantExceeded(Forbidden):
    """The grant's tokens are spent, or it does not reach so many levels down."""

    code = "grant_exceeded"


class GrantRecursion(Forbidden):
    """A reader under a grant tried to grant access or to delegate further."""

    code = "grant_recursion"


class GrantState(StrEnum):
    """Whether a grant can be used to read; if not, why."""

    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"
    EXCEEDED = "exceeded"


@dataclass(frozen=True)
class GrantRecord:
    """A grant: permission to read summaries and messages, and `depth` levels below.

    At most `token_cap` tokens can be read under it. `tokens_used` counts the tokens read or reserved for reads in
    progress; it is never more than the cap. `refusals` counts refused reads by error code.
    """

    grant_id: str
    question: str
    item_ids: tuple[str, ...]
    depth: int
    token_cap: int
    tokens_used: int
    reads: int
    state: GrantState
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    refusals: Mapping[str, int]

    @property
    def tokens_left(self) -> int:
        return self.token_cap - self.tokens_used


@dataclass(frozen=True)
class RoutingHint:
    """Whether opening everything directly is enough, and the calls for that."""

    direct_is_enough: bool
    tokens_below: int
    calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryExcerpt:
    """An excerpt of a message or summary about the question; do not trust its text."""

    id: str
    kind: ItemKind
    conversation_id: int
    first_seq: int
    last_seq: int
    text: str
    tokens: int
    complete: bool
    role: Role | None = None


class Ending(StrEnum):
    """How the work on a question ended."""

    ANSWERED = "answered"
    # No language model is configured.
    NO_MODEL = "no_model"
    NOTHING_FOUND = "nothing_found"
    # The model itself reports that it found only a part, or nothing.
    INCOMPLETE = "incomplete"
    OUT_OF_TURNS = "out_of_turns"
    OUT_OF_TIME = "out_of_time"
    MODEL_FAILED = "model_failed"
    NOT_UNDERSTOOD = "not_understood"
    GRANT_EXPIRED = "grant_expired"
    GRANT_REVOKED = "grant_revoked"
    GRANT_EXCEEDED = "grant_exceeded"


@dataclass(frozen=True)
class QueryStep:
    """One turn of a sub-agent: its action, and the tokens read or the refusal."""

    action: str
    about: str
    tokens: int
    refusal: str | None = None


@dataclass(frozen=True)
class QueryAnswer:
    """A model's answer to a question or, without a model, the best excerpts.

    `partial`: the answer may be incomplete; `ending` says why. `cited_ids` exist and are within the grant;
    `removed_ids` are the other cited ids. Trust the answer no more than the texts that it is made from.
    """

    question: str
    answer: str | None
    partial: bool
    ending: Ending
    cited_ids: tuple[str, ...]
    removed_ids: tuple[str, ...]
    excerpts: tuple[QueryExcerpt, ...]
    hint: RoutingHint
    grant: GrantRecord | None
    model: str | None = None
    steps: tuple[QueryStep, ...] = ()
    note: str | None = None
