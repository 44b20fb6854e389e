"""Select what a model sees: groups and a budget in, a receipt out. Pure.

A *candidate* is one context item, or a message that a query found. A *group* goes in whole or not at all: a summary, a
message, a tool call with its results. The planner decides where the fresh tail and the groups are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import NamedTuple

from compaction.planning.planner import MAX_ATOM_MESSAGES, TAIL_REACH, atoms, fresh_tail, sum_tokens
from compaction.policy import CompactionPolicy
from conversations.types import ContextItemType, Role
from retrieval.assembly.types import AssemblyReason, LeftOut, ReceiptLine

# How many of the newest items that did not fit have a receipt line of their own.
LINES_LEFT_OUT = 100

# Half of what the mandatory part leaves goes to messages that answer the query, the other half to everything else.
SHARE_OF_HITS = 0.5

# How much a message's age counts beside how well it answers: enough to choose between two that answer equally well.
# More costs evidence: 0.2 loses one in twenty of the messages that answer a question, at 1,000 tokens.
WEIGHT_OF_RECENCY = 0.05

by_ordinal = attrgetter("ordinal")
_is_recalled = attrgetter("is_recalled")
_newest = attrgetter("newest")
_place = attrgetter("ordinal", "is_recalled")


class Passage(NamedTuple):
    """The characters of a message that are shown, from `begin` to before `end`.

    The whole message costs `tokens_left_out` more.
    """

    begin: int
    end: int
    tokens_left_out: int


class Candidate(NamedTuple):
    """A slot that may be shown, or a message from below a summary.

    The ordinal of a message is its seq.
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
    # The part that is shown, if it is not the whole message.
    passage: Passage | None = None

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
    def kind(self) -> ContextItemType:
        return ContextItemType.MESSAGE if self.is_raw else ContextItemType.SUMMARY

    @property
    def whole(self) -> Candidate:
        """The same, shown as a whole."""
        if self.passage is None:
            return self
        return self._replace(tokens=self.tokens + self.passage.tokens_left_out, passage=None)

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
        return sum_tokens(self.candidates)

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
        """The candidates that go in, oldest first."""
        return tuple(sorted([decision.candidate for decision in self.taken], key=_place))


def groups_of(slots: Sequence[Candidate], policy: CompactionPolicy) -> list[Group]:
    """Group slots that go in whole, oldest first, and mark the mandatory ones."""
    together = atoms(slots)
    protected = fresh_tail(slots, policy, groups=together)
    groups = [
        Group((slot,), AssemblyReason.SYSTEM if slot.role is Role.SYSTEM else None)
        for slot in slots
        if slot.message_id is None or slot.role is Role.SYSTEM
    ]
    question = next(iter(protected.pinned), None)
    for atom in together:
        others = atom
        if question is not None and atom[0].ordinal <= question <= atom[-1].ordinal:
            # The question may lie between a call and its result without belonging to them.
            pinned = tuple(slot for slot in atom if slot.ordinal == question)
            others = tuple(slot for slot in atom if slot.ordinal != question)
            groups.append(Group(pinned, mandatory=AssemblyReason.PINNED))
        if others:
            in_tail = others[-1].ordinal in protected.tail
            groups.append(Group(others, AssemblyReason.FRESH_TAIL if in_tail else None))
    # Slots of a context differ in their ordinals.
    return sorted(groups, key=lambda group: group.candidates[-1].ordinal)


def edge_of(groups: Iterable[Group]) -> int | None:
    """The ordinal from which on every group is known to be complete, if any.

    A context is read from its newest end, so the oldest group may continue in what was not read yet.
    """
    seen = 0
    for group in groups:
        first = group.candidates[0]
        if seen >= MAX_ATOM_MESSAGES and first.is_raw:
            return first.ordinal
        if first.message_id is not None and not group.is_system:
            seen += len(group.candidates)
    return None


def inside(groups: Iterable[Group], edge: int) -> list[Group]:
    """The groups from the edge on, and the mandatory ones before it."""
    return [group for group in groups if group.mandatory or group.candidates[0].ordinal >= edge]


def is_enough(groups: Iterable[Group], *, edge: int, budget: int, policy: CompactionPolicy) -> bool:
    """Whether the groups from the edge on are more than the budget can hold.

    The whole fresh tail must be among them. System messages and a pinned question may be older; they are read apart.
    """
    near: list[Candidate] = []
    for group in groups:
        if group.candidates[0].ordinal >= edge:
            near += group.candidates
        elif group.mandatory is AssemblyReason.FRESH_TAIL:
            return False
    turns = sum([slot.message_id is not None and slot.role is not Role.SYSTEM for slot in near])
    return sum_tokens(near) > budget and turns >= TAIL_REACH * policy.fresh_tail_count


def with_hits(
    groups: Iterable[Group], scores: Mapping[int, float], covers: Mapping[str, Collection[int]]
) -> list[Group]:
    """The groups with the hits that each shows or covers, and their score."""
    marked = []
    for group in groups:
        shown = {candidate.message_id for candidate in group.candidates if candidate.message_id in scores}
        below = {hit for candidate in group.candidates for hit in covers.get(candidate.summary_id or "", ())}
        hits = frozenset(hit for hit in shown | below if hit is not None)
        marked.append(group._replace(hits=hits, score=max(scores[hit] for hit in hits)) if hits else group)
    return marked


def score(*, worth: float, best: float, seq: int, last_seq: int) -> float:
    """Score a hit: mostly by how well it answers, a little by how new it is."""
    relative = max(0.0, worth / best) if best > 0 else 0.0
    return (1 - WEIGHT_OF_RECENCY) * relative + WEIGHT_OF_RECENCY * seq / max(last_seq, 1)


def select(groups: Sequence[Group], *, budget: int, withheld: Collection[str] = ()) -> Selection:
    """Select mandatory groups, then answers to the query, then the newest.

    The newest are taken up to the first group that does not fit, so that there are no gaps between them. Tokens left
    then go to further hits. Ids in `withheld` are refused first.
    """
    quarantined: list[Candidate] = []
    if withheld:
        groups, quarantined = _without(groups, withheld)
    basket = _Basket()
    for group in groups:
        if group.mandatory is not None:
            basket.take(group, group.mandatory)
    open_groups = [group for group in groups if group.mandatory is None]
    answers = _take_answers(basket, [group for group in open_groups if group.hits], budget)
    rest = [group for group in open_groups if group.candidates[0].place not in answers] if answers else open_groups

    # Whatever is recalled answers the query.
    recalled = [group for group in rest if group.hits and group.is_recalled]
    own = [group for group in rest if not (group.hits and group.is_recalled)] if recalled else rest
    left: list[Group] = []
    in_order = sorted(own, key=_by_need, reverse=True)
    for place, group in enumerate(in_order):
        if not basket.take(group, AssemblyReason.FITS, budget):
            left = in_order[place:]
            break
    further = [group for group in left if group.hits and not group.is_summary]
    left = [group for group in left if not group.hits or group.is_summary]
    left += [
        group for group in best_first([*recalled, *further]) if not basket.take(group, AssemblyReason.RELEVANT, budget)
    ]
    left.sort(key=_newest, reverse=True)
    return Selection(
        taken=tuple(basket.decisions),
        refused=(
            *(Decision(candidate.whole, AssemblyReason.QUARANTINED, basket.total) for candidate in quarantined),
            *(
                Decision(candidate.whole, AssemblyReason.BUDGET, basket.total)
                for group in left
                for candidate in reversed(group.candidates)
            ),
        ),
        total_tokens=basket.total,
        over_budget=basket.total > budget,
    )


class _Basket:
    """The candidates taken so far, and their total of tokens."""

    def __init__(self) -> None:
        self.total = 0
        self.decisions: list[Decision] = []

    def take(self, group: Group, reason: AssemblyReason, most: float = inf) -> bool:
        """Add the group if the total stays within `most`. Returns whether it did."""
        total = self.total
        decisions = []
        for candidate in group.candidates:
            total += candidate.tokens
            decisions.append(Decision(candidate, reason, total))
        if total > most:
            return False
        self.total = total
        self.decisions += decisions
        return True


def room_of_hits(groups: Iterable[Group], budget: int) -> int:
    """The tokens available for messages that match the query."""
    return int(max(0, budget - sum(group.tokens for group in groups if group.mandatory is not None)) * SHARE_OF_HITS)


def _take_answers(basket: _Basket, groups: Sequence[Group], budget: int) -> set[tuple[int, bool]]:
    """Take hits within their share, then summaries of others; return the places."""
    ceiling = basket.total + int(max(0, budget - basket.total) * SHARE_OF_HITS)
    messages = best_first(group for group in groups if not group.is_summary)
    taken = [group for group in messages if basket.take(group, AssemblyReason.RELEVANT, ceiling)]
    shown = {decision.candidate.message_id for decision in basket.decisions} if groups else set()
    summaries = best_first(group for group in groups if group.is_summary and group.hits - shown)
    taken += [group for group in summaries if basket.take(group, AssemblyReason.RELEVANT, budget)]
    return {group.candidates[0].place for group in taken}


def best_first(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: (group.score, group.newest), reverse=True)


def _by_need(group: Group) -> tuple[bool, int, bool]:
    """Sort key, in descending order: summaries whose hits are shown come last."""
    last = group.candidates[-1]
    return not (group.hits and group.is_summary), last.ordinal, last.is_recalled


def _without(groups: Iterable[Group], ids: Collection[str]) -> tuple[list[Group], list[Candidate]]:
    """Split the groups into what may be shown and the withheld candidates."""
    shown: list[Group] = []
    withheld: list[Candidate] = []
    for group in groups:
        kept = tuple(candidate for candidate in group.candidates if candidate.id not in ids)
        withheld += [candidate for candidate in group.candidates if candidate.id in ids]
        if kept:
            shown.append(group._replace(candidates=kept))
    return shown, withheld


def left_out(selection: Selection, whole: LeftOut) -> LeftOut:
    """What a selection leaves out of the context, whose totals are `whole`."""
    return _less(whole, [decision.candidate for decision in selection.taken])


def receipt(selection: Selection, missing: LeftOut, *, begins: int, edge: int | None) -> tuple[ReceiptLine, ...]:
    """List every decision in the order it was made.

    What is missing and has no line of its own is summed in the last line. `begins` is the seq where the context begins;
    nothing before `edge`, if given, was read.
    """
    # Recalled messages are not in the context, so they do not count as missing from it.
    recalled = [decision for decision in selection.refused if decision.candidate.is_recalled]
    items = [decision for decision in selection.refused if not decision.candidate.is_recalled]
    named, unnamed = items[:LINES_LEFT_OUT], items[LINES_LEFT_OUT:]
    rest = _less(missing, [decision.candidate for decision in named])
    in_part = sum(_left_out_of(decision.candidate) for decision in selection.taken)
    lines = [*_lines(selection.taken, included=True), *_lines([*recalled, *named], included=False)]
    if rest.messages or rest.summaries:
        last_seqs = [decision.candidate.last_seq for decision in unnamed] + ([] if edge is None else [edge - 1])
        lines.append(
            ReceiptLine(
                included=False,
                reason=AssemblyReason.BUDGET,
                tokens=rest.tokens - in_part,
                running_total=selection.total_tokens,
                first_seq=begins,
                last_seq=max(last_seqs, default=begins),
                messages=rest.messages,
                summaries=rest.summaries,
            )
        )
    return tuple(lines)


def _less(whole: LeftOut, candidates: Iterable[Candidate]) -> LeftOut:
    items = [candidate for candidate in candidates if not candidate.is_recalled]
    raw = sum([candidate.message_id is not None for candidate in items])
    return LeftOut(
        messages=whole.messages - raw,
        summaries=whole.summaries - (len(items) - raw),
        tokens=whole.tokens - sum_tokens(items),
    )


def _left_out_of(candidate: Candidate) -> int:
    """The tokens that the context loses because this message is cut."""
    return 0 if candidate.passage is None or candidate.is_recalled else candidate.passage.tokens_left_out


def _lines(decisions: Iterable[Decision], *, included: bool) -> list[ReceiptLine]:
    return [
        ReceiptLine(
            included=included,
            reason=reason,
            tokens=candidate.tokens,
            running_total=running_total,
            first_seq=candidate.ordinal,
            last_seq=candidate.last_seq,
            id=candidate.id,
            kind=candidate.kind,
            messages=int(candidate.is_raw),
            summaries=int(not candidate.is_raw),
            tokens_left_out=0 if candidate.passage is None else candidate.passage.tokens_left_out,
        )
        for candidate, reason, running_total in decisions
    ]
