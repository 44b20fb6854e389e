"""The path to a head, and what of the lineage lies on it.

Each message has one predecessor, so a summary is on a path if the last message that it stands for is. Two summaries on
one path may still overlap, where each was made on another branch; then one of them is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from conversations.models import Conversation
from conversations.sql import load, rows

_SQL = load("conversations/branches/paths.sql")


@dataclass(frozen=True)
class Branch:
    """Messages that follow each other, from one move of the head to the next.

    Its first message follows `follows_seq`. It is on the active path up to `active_to_seq`; 0 if none of it is.
    """

    number: int
    first_seq: int
    last_seq: int
    follows_seq: int
    active_to_seq: int
    tokens: int


@dataclass(frozen=True)
class Path:
    """What is off the path of a conversation, and the summaries kept on it.

    `off` is an int8multirange as text. `kept`, with all that they were made from, are the summaries that a context may
    show; None, for all of them, where the head never moved.
    """

    off: str = "{}"
    kept: tuple[str, ...] | None = None

    @property
    def values(self) -> dict[str, object]:
        """The parameters of statements that follow a path."""
        return {"off": self.off, "kept": None if self.kept is None else list(self.kept)}


WHOLE = Path()


def active_path(conversation_id: int) -> Path:
    """The path to the head, by the moves of the head alone."""
    [(moves, off)] = rows(_SQL["active"], {"id": conversation_id}) or [(0, "{}")]
    return Path(off, kept_summaries(conversation_id, off)) if moves else WHOLE


def kept_summaries(
    conversation_id: int, off: str, *, before: datetime | None = None, upto: bool = True, last: int | None = None
) -> tuple[str, ...]:
    """The summaries on a path that do not overlap, with all that they were made from.

    Those of the most messages first: a summary that compaction makes of those kept is kept, and nothing else changes.
    """
    values = {"id": conversation_id, "off": off, "before": before, "upto": upto, "last": last}
    found = rows(_SQL["summaries_on_path"], values)
    sources: Mapping[str, Sequence[str]] = {summary_id: below or () for summary_id, _, below, _ in found}
    messages: Mapping[str, Sequence[int]] = {summary_id: ids or () for summary_id, _, _, ids in found}
    superseded = {old for _, old, _, _ in found if old is not None}
    kept: set[str] = set()
    covered: set[int] = set()
    for summary_id in sources:
        if summary_id in superseded or summary_id in kept:
            continue
        below = _below(summary_id, sources)
        stood_for = {message_id for each in below for message_id in messages.get(each, ())}
        if covered.isdisjoint(stood_for):
            covered |= stood_for
            kept |= below
    return tuple(sorted(kept))


def _below(summary_id: str, sources: Mapping[str, Sequence[str]]) -> set[str]:
    """The summary and all below it."""
    found, left = {summary_id}, [summary_id]
    while left:
        new = [each for each in sources.get(left.pop(), ()) if each not in found]
        found.update(new)
        left += new
    return found


def branches_of(conversation: Conversation) -> list[Branch]:
    """The stretches of messages between the moves of the head, oldest first."""
    found = rows(_SQL["branches"], {"id": conversation.pk})
    return [Branch(*row) for row in found]
