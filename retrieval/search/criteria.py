"""What a search is narrowed to: which conversations, when, by whom, with what, how far, below which summary. Pure.

A criterion that a kind of thing does not have leaves that kind out: no summary has a role, no message a depth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from conversations.errors import Invalid
from conversations.exactness import is_storable
from conversations.types import PartType, Role
from retrieval.types import GrepScope, ItemKind

E = TypeVar("E", bound=StrEnum)

# As many as anybody lists by hand; a whole workspace is searched by naming none.
MOST_NAMED = 100

MESSAGE, SUMMARY, FILE = ItemKind.MESSAGE, ItemKind.SUMMARY, ItemKind.FILE
_KINDS = {
    GrepScope.MESSAGES: frozenset({MESSAGE}),
    GrepScope.SUMMARIES: frozenset({SUMMARY}),
    GrepScope.BOTH: frozenset({MESSAGE, SUMMARY}),
    GrepScope.FILES: frozenset({FILE}),
    GrepScope.ALL: frozenset({MESSAGE, SUMMARY, FILE}),
}
# Which kinds have what these criteria ask about; all have the others.
_HAD_BY = {
    "roles": frozenset({MESSAGE}),
    "part_types": frozenset({MESSAGE}),
    "tool_names": frozenset({MESSAGE}),
    "depth": frozenset({SUMMARY}),
    "from_seq": frozenset({MESSAGE, SUMMARY}),
    "to_seq": frozenset({MESSAGE, SUMMARY}),
    "under": frozenset({MESSAGE, SUMMARY}),
}


@dataclass(frozen=True)
class Criteria:
    """What is asked for besides the words; None and empty mean anything. `since` is included, `until` is not."""

    conversation_id: int | None = None
    conversation_ids: tuple[int, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    roles: tuple[Role, ...] = ()
    part_types: tuple[PartType, ...] = ()
    tool_names: tuple[str, ...] = ()
    from_seq: int | None = None
    to_seq: int | None = None
    depth: int | None = None
    under: str | None = None
    kinds: frozenset[ItemKind] = field(default=_KINDS[GrepScope.BOTH])

    @property
    def named(self) -> tuple[int, ...]:
        """The conversations that are named; none for all."""
        return self.conversation_ids if self.conversation_id is None else (self.conversation_id,)

    @property
    def picks_among_messages(self) -> bool:
        """Whether messages are left out for something else than where they stand."""
        return bool(self.since or self.until or self.roles or self.part_types or self.tool_names or self.under)


def criteria(
    *,
    where: GrepScope,
    conversation_id: int | None = None,
    conversation_ids: Sequence[int] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    roles: Sequence[Role | str] = (),
    part_types: Sequence[PartType | str] = (),
    tool_names: Sequence[str] = (),
    from_seq: int | None = None,
    to_seq: int | None = None,
    depth: int | None = None,
    under: str | None = None,
) -> Criteria:
    """What was asked for, in one form; Invalid, naming the param, for what nothing could answer."""
    if conversation_id is not None and conversation_ids:
        raise wrong("conversation_ids", "Give either one conversation or a list of them.")
    several = tuple(dict.fromkeys(_few("conversation_ids", conversation_ids)))
    if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in several):
        raise wrong("conversation_ids", "A conversation is named by its number.")
    names = _few("tool_names", tool_names)
    if not all(isinstance(name, str) and name and is_storable(name) for name in names):
        raise wrong("tool_names", "The name of a tool is a text that is not empty.")
    begin, end = _moment("since", since), _moment("until", until)
    if begin is not None and end is not None and begin >= end:
        raise wrong("until", "This is not later than since, so nothing lies between them.")
    low, high = _number("from_seq", from_seq), _number("to_seq", to_seq)
    if low is not None and high is not None and low > high:
        raise wrong("to_seq", f"This is before from_seq, {low}, so nothing lies between them.")
    one = conversation_id if conversation_id is not None or len(several) != 1 else several[0]
    if (low is not None or high is not None) and one is None and under is None:
        name = "from_seq" if low is not None else "to_seq"
        raise wrong(name, "Messages are numbered within their conversation: name one conversation.")
    found = Criteria(
        conversation_id=one,
        conversation_ids=several,
        since=begin,
        until=end,
        roles=_each_of(Role, "roles", roles),
        part_types=_each_of(PartType, "part_types", part_types),
        tool_names=names,
        from_seq=low,
        to_seq=high,
        depth=_number("depth", depth),
        under=under,
    )
    return _with_kinds(found, where)


def _with_kinds(asked: Criteria, where: GrepScope) -> Criteria:
    kinds = _KINDS[where]
    for name in _said(asked):
        if not kinds & _HAD_BY[name]:
            raise wrong(name, f"Nothing answers to this among what else is asked for ({', '.join(sorted(kinds))}).")
        kinds &= _HAD_BY[name]
    return Criteria(**{**asked.__dict__, "kinds": kinds})


def _said(asked: Criteria) -> Iterator[str]:
    for name in _HAD_BY:
        if getattr(asked, name) not in (None, ()):
            yield name


def _few(name: str, given: Collection[Any]) -> tuple[Any, ...]:
    if isinstance(given, str) or len(given) > MOST_NAMED:
        raise wrong(name, f"This must be a list of at most {MOST_NAMED}.")
    return tuple(given)


def _each_of(kind: type[E], name: str, given: Sequence[E | str]) -> tuple[E, ...]:
    return tuple(dict.fromkeys(one_of(kind, each, name) for each in _few(name, given)))


def one_of(kind: type[E], value: str, name: str) -> E:
    """The member that this is the value of; Invalid if it is none."""
    try:
        return kind(value)
    except ValueError:
        raise wrong(name, f"{str(value)[:80]!r} is none of {', '.join(kind)}.") from None


def _moment(name: str, given: datetime | None) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise wrong(name, "This must be a moment with its time zone.")
    try:
        return given.astimezone(UTC)
    except OverflowError:
        raise wrong(name, "This is beyond the calendar.") from None


def _number(name: str, given: int | None) -> int | None:
    # A larger number is a place that no row can have, which PostgreSQL would refuse to compare with.
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**63):
        raise wrong(name, f"{str(given)[:80]!r} is not a whole number from 0 up.")
    return given


def wrong(name: str, sentence: str) -> Invalid:
    """The refusal of one param, as params themselves refuse: whose bound it breaks is nothing to the caller."""
    return Invalid(f"{name}: {sentence}", code="invalid_params", errors={name: [sentence]})
