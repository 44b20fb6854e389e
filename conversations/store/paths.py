"""Find the path to the head of a conversation, and the summaries on it.

A path is the chain of predecessors from one message back to the first. Each message has one predecessor, so a summary
is on a path if its last message is. Summaries from different branches may overlap on a path; one of them is kept then.
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
    """The messages appended between two moves of the head.

    The first one follows `follows_seq`. Messages up to `active_to_seq` are on the active path; 0 if none is.
    """

    number: int
    first_seq: int
    last_seq: int
    follows_seq: int
    active_to_seq: int
    tokens: int


@dataclass(frozen=True)
class Path:
    """A path: the seqs that are not on it, and the summaries usable on it.

    `inactive` is the text of an int8multirange of seqs. `usable_summaries` has the ids of summaries that do not
    overlap, and of all summaries that they were made from. None means that all are usable: the head never moved.
    """

    inactive: str = "{}"
    usable_summaries: tuple[str, ...] | None = None

    @property
    def values(self) -> dict[str, object]:
        """The parameters `off` and `kept` of SQL statements."""
        return {"off": self.inactive, "kept": None if self.usable_summaries is None else list(self.usable_summaries)}


WHOLE = Path()


def active_path(conversation_id: int) -> Path:
    """Compute the path to the head from head_moves, not from the stored columns."""
    [(moves, off)] = rows(_SQL["active"], {"id": conversation_id}) or [(0, "{}")]
    return Path(off, kept_summaries(conversation_id, off)) if moves else WHOLE


def path_at(conversation_id: int, time: datetime) -> Path:
    """Compute the path to the head at a time, and to what was appended to it."""
    [(off,)] = rows(_SQL["at_time"], {"id": conversation_id, "time": time})
    return Path(off, kept_summaries(conversation_id, off, before=time))


def kept_summaries(
    conversation_id: int, off: str, *, before: datetime | None = None, upto: bool = True, last: int | None = None
) -> tuple[str, ...]:
    """Choose summaries without overlaps on the path that leaves out the seqs `off`.

    Returns the sorted ids of these summaries and of all summaries that they were made from. Summaries that were created
    after `before` (or at that moment, unless `upto`) or end after seq `last` are ignored. The largest are chosen first:
    if a new summary is made from chosen ones, it is chosen as well, and changes no other choice.
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
    """Return the ids of a summary and of all summaries that it was made from."""
    found, left = {summary_id}, [summary_id]
    while left:
        new = [each for each in sources.get(left.pop(), ()) if each not in found]
        found.update(new)
        left += new
    return found


def branches_of(conversation: Conversation) -> list[Branch]:
    """List the branches of a conversation, oldest first."""
    return [Branch(*row) for row in rows(_SQL["branches"], {"id": conversation.pk})]
