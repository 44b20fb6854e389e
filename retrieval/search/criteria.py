"""What a search is narrowed to: conversations, time, roles, parts, tools, seqs, depth. Pure.

A criterion that a kind of thing does not have leaves that kind out: no summary has a role, no message a depth.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypedDict, TypeVar, Unpack

from conversations.content.lossless_values import is_storable
from conversations.errors import Invalid
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


class Narrowing(TypedDict, total=False):
    """What a search may be narrowed to, as callers give it; None, empty and left out mean anything.

    One conversation or several; `since` (included) and `until` (not); the author's role, what kinds of parts it has,
    which tools it calls or answers; `from_seq` and `to_seq` in one conversation; the `depth` of summaries; what a
    summary was made from, all the way down (`under`).
    """

    conversation_id: int | None
    conversation_ids: Sequence[int]
    since: datetime | None
    until: datetime | None
    roles: Sequence[Role | str]
    part_types: Sequence[PartType | str]
    tool_names: Sequence[str]
    from_seq: int | None
    to_seq: int | None
    depth: int | None
    under: str | None


@dataclass(frozen=True)
class Criteria:
    """The same once it is checked, in one form, and the kinds of things that can have all of it."""

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


def criteria(*, where: GrepScope, **narrowing: Unpack[Narrowing]) -> Criteria:
    """Validate and normalize; Invalid, naming the param, for what nothing could meet."""
    given = Criteria(**{name: _CHECKS.get(name, _as_it_is)(name, value) for name, value in narrowing.items()})
    if given.conversation_id is not None and given.conversation_ids:
        raise wrong("conversation_ids", "Give either one conversation or a list of them.")
    if given.since is not None and given.until is not None and given.since >= given.until:
        raise wrong("until", "This is not later than since, so nothing lies between them.")
    if given.from_seq is not None and given.to_seq is not None and given.from_seq > given.to_seq:
        raise wrong("to_seq", f"This is before from_seq, {given.from_seq}, so nothing lies between them.")
    if len(given.conversation_ids) == 1:
        given = replace(given, conversation_id=given.conversation_ids[0])
    is_counted = given.from_seq is not None or given.to_seq is not None
    if is_counted and given.conversation_id is None and given.under is None:
        name = "from_seq" if given.from_seq is not None else "to_seq"
        raise wrong(name, "Messages are numbered within their conversation: name one conversation.")
    return _with_kinds(given, where)


def _with_kinds(given: Criteria, where: GrepScope) -> Criteria:
    kinds = _KINDS[where]
    for name in _names_given(given):
        if not kinds & _HAD_BY[name]:
            raise wrong(name, f"Nothing answers to this among what else is asked for ({', '.join(sorted(kinds))}).")
        kinds &= _HAD_BY[name]
    return given if kinds == given.kinds else replace(given, kinds=kinds)


def _names_given(given: Criteria) -> Iterator[str]:
    for name in _HAD_BY:
        if getattr(given, name) not in (None, ()):
            yield name


def _few(name: str, given: Collection[Any]) -> tuple[Any, ...]:
    if isinstance(given, str) or len(given) > MOST_NAMED:
        raise wrong(name, f"This must be a list of at most {MOST_NAMED}.")
    return tuple(given)


def _each_of(kind: type[E]) -> Callable[[str, Collection[Any]], tuple[E, ...]]:
    def checked(name: str, given: Collection[Any]) -> tuple[E, ...]:
        return tuple(dict.fromkeys(one_of(kind, each, name) for each in _few(name, given)))

    return checked


def one_of(kind: type[E], value: str, name: str) -> E:
    """The member that this is the value of; Invalid if it is none."""
    try:
        return kind(value)
    except ValueError:
        raise wrong(name, f"{str(value)[:80]!r} is none of {', '.join(kind)}.") from None


def _conversations(name: str, given: Collection[Any]) -> tuple[int, ...]:
    several = tuple(dict.fromkeys(_few(name, given)))
    if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in several):
        raise wrong(name, "A conversation is named by its number.")
    return several


def _tools(name: str, given: Collection[Any]) -> tuple[str, ...]:
    names = _few(name, given)
    if not all(isinstance(each, str) and each and is_storable(each) for each in names):
        raise wrong(name, "The name of a tool is a text that is not empty.")
    return names


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


def _as_it_is(name: str, given: Any) -> Any:
    # Whether there is such a conversation or summary that the caller may see, the scope says.
    return given


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "conversation_id": _as_it_is,
    "conversation_ids": _conversations,
    "since": _moment,
    "until": _moment,
    "roles": _each_of(Role),
    "part_types": _each_of(PartType),
    "tool_names": _tools,
    "from_seq": _number,
    "to_seq": _number,
    "depth": _number,
    "under": _as_it_is,
}


def wrong(name: str, sentence: str) -> Invalid:
    """The refusal of one param, as params themselves refuse: whose bound it breaks is nothing to the caller."""
    return Invalid(f"{name}: {sentence}", code="invalid_params", errors={name: [sentence]})
