"""Which part of an active context a model gets to see. Pure: groups of candidates and a budget in, decisions out.

The words: a *candidate* is one context item, or a message that a query found. A *group* goes in whole or not at all:
a summary, a message, a tool call with its results. Where the fresh tail and the groups are is the planner's to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from compaction.planner import MAX_ATOM_MESSAGES, TAIL_REACH, Slot, atoms, fresh_tail
from compaction.policy import CompactionPolicy
from conversations.types import ContextItemType
from retrieval.assembly.types import AssemblyReason

# Half of what the mandatory part leaves goes to messages that answer the query, the other half to everything else.
SHARE_OF_HITS = 0.5

# How much a message's age counts beside how well it answers: enough to choose between two that answer equally well.
# More costs evidence: 0.2 loses one in twenty of the messages that answer a question, at 1,000 tokens.
WEIGHT_OF_RECENCY = 0.05


@dataclass(frozen=True, slots=True)
class Candidate(Slot):
    """A slot that may be shown, or a message from below a summary, which then has its seq for an ordinal."""

    last_seq: int = 0
    is_recalled: bool = False

    @property
    def id(self) -> str:
        return self.summary_id or f"msg_{self.message_id}"

    @property
    def kind(self) -> ContextItemType:
        return ContextItemType.MESSAGE if self.is_raw else ContextItemType.SUMMARY

    @property
    def place(self) -> tuple[int, bool]:
        """Where it stands in the history; a recalled message comes right behind the summary that stands for it."""
        return self.ordinal, self.is_recalled


class Group(NamedTuple):
    """Candidates that go in together, and how well the messages in them, or below them, answer the query."""

    # Groups and decisions are tuples, as those are made fastest, and a context may have a thousand of each.

    candidates: tuple[Candidate, ...]
    mandatory: AssemblyReason | None = None
    hits: frozenset[int] = frozenset()
    score: float = 0.0

    @property
    def tokens(self) -> int:
        return sum([candidate.tokens for candidate in self.candidates])

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
        return any(candidate.is_recalled for candidate in self.candidates)


class Decision(NamedTuple):
    candidate: Candidate
    included: bool
    reason: AssemblyReason
    running_total: int


@dataclass(frozen=True)
class Selection:
    """Every decision, in the order it was made."""

    decisions: tuple[Decision, ...]
    total_tokens: int
    over_budget: bool

    @property
    def included(self) -> tuple[Candidate, ...]:
        """What goes in, oldest first."""
        chosen = (decision.candidate for decision in self.decisions if decision.included)
        return tuple(sorted(chosen, key=lambda candidate: candidate.place))


def groups_of(slots: Sequence[Candidate], policy: CompactionPolicy) -> list[Group]:
    """Neighbouring slots of a context in the groups that go in whole, oldest first, the mandatory ones marked."""
    together = cast(list[tuple[Candidate, ...]], atoms(slots))
    protected = fresh_tail(slots, policy, groups=together)
    groups = [
        Group((slot,), mandatory=AssemblyReason.SYSTEM if slot.is_system else None)
        for slot in slots
        if slot.is_system or not slot.is_raw
    ]
    for atom in together:
        # A pinned question may stand between a call and its result, and is part of neither.
        others = atom
        if protected.pinned and any(slot.ordinal in protected.pinned for slot in atom):
            pinned = tuple(slot for slot in atom if slot.ordinal in protected.pinned)
            others = tuple(slot for slot in atom if slot not in pinned)
            groups.append(Group(pinned, mandatory=AssemblyReason.PINNED))
        if others:
            in_tail = others[-1].ordinal in protected.tail
            groups.append(Group(others, mandatory=AssemblyReason.FRESH_TAIL if in_tail else None))
    return sorted(groups, key=lambda group: group.newest)


def edge_of(groups: Iterable[Group]) -> int | None:
    """The ordinal from which on no group can have begun before the oldest of these; None if there is none such.

    Whoever reads a context from its newest end does not know what a group at the far edge belongs to.
    """
    seen = 0
    for group in groups:
        first = group.candidates[0]
        if seen >= MAX_ATOM_MESSAGES and first.is_raw:
            return first.ordinal
        seen += sum(candidate.is_raw and not candidate.is_system for candidate in group.candidates)
    return None


def inside(groups: Iterable[Group], edge: int) -> list[Group]:
    """The groups that are surely whole, and those before the edge that have to be shown in any case."""
    return [group for group in groups if group.mandatory or group.candidates[0].ordinal >= edge]


def is_enough(groups: Sequence[Group], *, edge: int, budget: int, policy: CompactionPolicy) -> bool:
    """Whether the newest groups of a context, from the edge on, are all that an answer within the budget can hold.

    System messages and a pinned question may lie farther back; they are looked for by themselves.
    """
    tokens = turns = 0
    for group in groups:
        if group.candidates[0].ordinal >= edge:
            tokens += group.tokens
            turns += 0 if group.is_summary or group.is_system else len(group.candidates)
        elif group.mandatory is AssemblyReason.FRESH_TAIL:
            return False
    return tokens > budget and turns >= TAIL_REACH * policy.fresh_tail_count


def with_hits(
    groups: Iterable[Group], scores: Mapping[int, float], stands_for: Mapping[str, Collection[int]]
) -> list[Group]:
    """The groups, each with the hits that it shows, or that its summary stands for, and the best of their scores."""
    marked = []
    for group in groups:
        shown = {candidate.message_id for candidate in group.candidates if candidate.message_id in scores}
        below = {hit for candidate in group.candidates for hit in stands_for.get(candidate.summary_id or "", ())}
        hits = frozenset(hit for hit in shown | below if hit is not None)
        marked.append(group._replace(hits=hits, score=max(scores[hit] for hit in hits)) if hits else group)
    return marked


def score(*, worth: float, best: float, seq: int, last_seq: int) -> float:
    """How much a message that answers the query deserves its place: mostly by how well, a little by how new it is."""
    relative = max(0.0, worth / best) if best > 0 else 0.0
    return (1 - WEIGHT_OF_RECENCY) * relative + WEIGHT_OF_RECENCY * seq / max(last_seq, 1)


def select(groups: Sequence[Group], *, budget: int) -> Selection:
    """What goes in: the mandatory groups whatever they cost, then what answers the query, then the newest of the rest.

    The newest of the rest end at the first group that does not fit, so that no gap opens between them. Room that is
    left then goes to further answers.
    """
    basket = _Basket()
    for group in groups:
        if group.mandatory is not None:
            basket.take(group, group.mandatory)
    open_groups = [group for group in groups if group.mandatory is None]

    room = max(0, budget - basket.total)
    ceiling = basket.total + int(room * SHARE_OF_HITS)
    for group in _best_first(group for group in open_groups if group.hits and not group.is_summary):
        if basket.total + group.tokens <= ceiling:
            basket.take(group, AssemblyReason.RELEVANT)
    for group in _best_first(group for group in open_groups if group.is_summary and group.hits - basket.shown):
        if basket.total + group.tokens <= budget:
            basket.take(group, AssemblyReason.RELEVANT)

    rest = [group for group in open_groups if group not in basket]
    for group in sorted((group for group in rest if not group.is_recalled), key=_by_need, reverse=True):
        if basket.total + group.tokens > budget:
            break
        basket.take(group, AssemblyReason.FITS)
    for group in _best_first(group for group in rest if group.is_recalled):
        if basket.total + group.tokens <= budget:
            basket.take(group, AssemblyReason.RELEVANT)
    left = sorted((group for group in rest if group not in basket), key=lambda group: group.newest, reverse=True)
    return Selection(
        decisions=(*basket.decisions, *_left_out(left, basket.total)),
        total_tokens=basket.total,
        over_budget=basket.total > budget,
    )


class _Basket:
    """What is in so far."""

    def __init__(self) -> None:
        self.total = 0
        self.decisions: list[Decision] = []
        self.shown: set[int | None] = set()
        self._places: set[tuple[int, bool]] = set()

    def take(self, group: Group, reason: AssemblyReason) -> None:
        for candidate in group.candidates:
            self.total += candidate.tokens
            self.decisions.append(Decision(candidate, True, reason, self.total))
            self.shown.add(candidate.message_id)
            self._places.add(candidate.place)

    def __contains__(self, group: Group) -> bool:
        return group.candidates[0].place in self._places


def _best_first(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: (group.score, group.newest), reverse=True)


def _by_need(group: Group) -> tuple[bool, tuple[int, bool]]:
    """The newest first; a summary whose hits are shown word for word has the least to add."""
    return not (group.is_summary and group.hits), group.newest


def _left_out(groups: Iterable[Group], total: int) -> Iterable[Decision]:
    for group in groups:
        for candidate in reversed(group.candidates):
            yield Decision(candidate, False, AssemblyReason.BUDGET, total)
