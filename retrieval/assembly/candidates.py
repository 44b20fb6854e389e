"""The candidates for an assembled context, and the selection. Pure.

The words: a *candidate* is one context item, or a message that a query found. A *group* goes in whole or not at all: a
summary, a message, a tool call with its results.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from conversations.types import Role
from retrieval.assembly.types import AssemblyReason

_is_recalled = attrgetter("is_recalled")
_place = attrgetter("ordinal", "is_recalled")


class Candidate(NamedTuple):
    """A slot that may be shown, or a message from below a summary.

    The ordinal of such a message is its seq.
    """

    ordinal: int
    tokens: int
    message_id: int | None = None
    summary_id: str | None = None
    role: Role | None = None
    calls: tuple[str, ...] = ()
    is_answer: bool = False
    last_seq: int = 0
    is_recalled: bool = False

    @property
    def is_raw(self) -> bool:
        return self.message_id is not None

    @property
    def is_system(self) -> bool:
        return self.role is Role.SYSTEM

    @property
    def is_question(self) -> bool:
        return self.role is Role.USER and not self.is_answer

    @property
    def id(self) -> str:
        return self.summary_id or f"msg_{self.message_id}"

    @property
    def place(self) -> tuple[int, bool]:
        """Its place in the history; a recalled message follows its summary."""
        return self.ordinal, self.is_recalled


class Group(NamedTuple):
    """Candidates that go in together, with how well they answer the query."""

    candidates: tuple[Candidate, ...]
    mandatory: AssemblyReason | None = None
    hits: frozenset[int] = frozenset()
    score: float = 0.0

    @property
    def tokens(self) -> int:
        # Most groups are one candidate.
        return (
            self.candidates[0].tokens
            if len(self.candidates) == 1
            else sum([candidate.tokens for candidate in self.candidates])
        )

    @property
    def newest(self) -> tuple[int, bool]:
        """The place of its last candidate: how new it is as a whole."""
        return self.candidates[-1].place

    @property
    def is_summary(self) -> bool:
        return not self.candidates[0].is_raw

    @property
    def is_system(self) -> bool:
        return self.mandatory is AssemblyReason.SYSTEM

    @property
    def is_recalled(self) -> bool:
        return any(map(_is_recalled, self.candidates))


class Decision(NamedTuple):
    candidate: Candidate
    reason: AssemblyReason
    running_total: int


@dataclass(frozen=True)
class Selection:
    """Every decision, in the order it was made: what was taken, and what was refused."""

    taken: tuple[Decision, ...]
    refused: tuple[Decision, ...]
    total_tokens: int
    over_budget: bool

    @property
    def included(self) -> tuple[Candidate, ...]:
        """What goes in, oldest first."""
        return tuple(sorted([decision.candidate for decision in self.taken], key=_place))
