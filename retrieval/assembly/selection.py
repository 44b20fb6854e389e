"""Select what a model sees, within a token budget, and write the receipt; no I/O.

A *candidate* is one context item, or a message that a query found. A *group* is a summary, a message, or a tool call
with its results; it is included completely or not at all. The planner decides on the fresh tail and the groups.
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

# Up to this many of the newest items that did not fit get a receipt line each. One line sums up the others.
LINES_LEFT_OUT = 100

# The share of the tokens not used by mandatory groups that is for hits of the query; the rest is for other groups.
SHARE_OF_HITS = 0.5

# The weight of recency in the score of a hit, just large enough to order hits of equal relevance. A larger weight loses
# relevant messages: with 0.2 and a budget of 1,000 tokens, one in twenty of those that answer a question.
WEIGHT_OF_RECENCY = 0.05

by_ordinal = attrgetter("ordinal")
_is_recalled = attrgetter("is_recalled")
_newest = attrgetter("newest")
_place = attrgetter("place")


class Passage(NamedTuple):
    """The range of a message's characters that is shown: from `begin` up to `end`.

    The character at `end` is not included. The whole message would cost `tokens_left_out` more tokens.
    """

    begin: int
    end: int
    tokens_left_out: int


class Candidate(NamedTuple):
    """A slot of the context, or a message that a summary in the context replaces.

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
    # The range that is shown; None if the whole message is shown.
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
        """This candidate, shown in full."""
        if self.passage is None:
            return self
        return self._replace(tokens=self.tokens + self.passage.tokens_left_out, passage=None)

    @property
    def place(self) -> tuple[int, bool]:
        """Its position in the context; a recalled message comes after its summary."""
        return self.ordinal, self.is_recalled


class Group(NamedTuple):
    """Candidates that are included together, with their hits and relevance score."""

    candidates: tuple[Candidate, ...]
    mandatory: AssemblyReason | None = None
    hits: frozenset[int] = frozenset()
    score: float = 0.0

    @property
    def tokens(self) -> int:
        return sum_tokens(self.candidates)

    @property
    def newest(self) -> tuple[int, bool]:
        """The position of its last candidate, which is the recency of the group."""
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
    """All decisions, in the order they were made: taken and refused candidates."""

    taken: tuple[Decision, ...]
    refused: tuple[Decision, ...]
    total_tokens: int
    over_budget: bool

    @property
    def included(self) -> tuple[Candidate, ...]:
        """The candidates that are included, oldest first."""
        return tuple(sorted([decision.candidate for decision in self.taken], key=_place))


def groups_of(slots: Sequence[Candidate], policy: CompactionPolicy) -> list[Group]:
    """Group slots that belong together, oldest first; mark the mandatory groups."""
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
    # No two slots of a context have the same ordinal, so this order is unique.
    return sorted(groups, key=lambda group: group.candidates[-1].ordinal)


def edge_of(groups: Iterable[Group]) -> int | None:
    """The ordinal from which on all groups are certainly complete; None if unknown.

    A context is read newest first, so the oldest groups may continue in slots that are not read yet.
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
    """The groups from `edge` on, and the mandatory groups before it."""
    return [group for group in groups if group.mandatory or group.candidates[0].ordinal >= edge]


def is_enough(groups: Iterable[Group], *, edge: int, budget: int, policy: CompactionPolicy) -> bool:
    """Whether the groups from `edge` on exceed the budget and have the fresh tail.

    System messages and a pinned question may be before `edge`, because they are read separately.
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
    """Add to each group its hits (shown or replaced by a summary) and the best score."""
    marked = []
    for group in groups:
        shown = {candidate.message_id for candidate in group.candidates if candidate.message_id in scores}
        below = {hit for candidate in group.candidates for hit in covers.get(candidate.summary_id or "", ())}
        hits = frozenset(hit for hit in shown | below if hit is not None)
        marked.append(group._replace(hits=hits, score=max(scores[hit] for hit in hits)) if hits else group)
    return marked


def score(*, worth: float, best: float, seq: int, last_seq: int) -> float:
    """Score a hit: relevance relative to the best hit, plus a small recency term."""
    relative = max(0.0, worth / best) if best > 0 else 0.0
    return (1 - WEIGHT_OF_RECENCY) * relative + WEIGHT_OF_RECENCY * seq / max(last_seq, 1)


def select(groups: Sequence[Group], *, budget: int, withheld: Collection[str] = ()) -> Selection:
    """Select mandatory groups, then hits of the query, then the newest groups.

    The newest groups are taken up to the first one that does not fit, so that there are no gaps between them. Remaining
    tokens are used for further hits. Candidates whose ids are in `withheld` are never selected.
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

    # A recalled message is always in a group with a hit.
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
    """The candidates taken so far, and their total number of tokens."""

    def __init__(self) -> None:
        self.total = 0
        self.decisions: list[Decision] = []

    def take(self, group: Group, reason: AssemblyReason, most: float = inf) -> bool:
        """Add the group if the total stays within `most`; return whether it was added."""
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
    """The number of tokens available for messages that match the query."""
    return int(max(0, budget - sum(group.tokens for group in groups if group.mandatory is not None)) * SHARE_OF_HITS)


def _take_answers(basket: _Basket, groups: Sequence[Group], budget: int) -> set[tuple[int, bool]]:
    """Take hits within their share, then summaries of others; return the positions."""
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
    """Sort key, descending: newest first; summaries whose hits are shown come last."""
    last = group.candidates[-1]
    return not (group.hits and group.is_summary), last.ordinal, last.is_recalled


def _without(groups: Iterable[Group], ids: Collection[str]) -> tuple[list[Group], list[Candidate]]:
    """Split the groups into groups that may be shown and withheld candidates."""
    shown: list[Group] = []
    withheld: list[Candidate] = []
    for group in groups:
        kept = tuple(candidate for candidate in group.candidates if candidate.id not in ids)
        withheld += [candidate for candidate in group.candidates if candidate.id in ids]
        if kept:
            shown.append(group._replace(candidates=kept))
    return shown, withheld


def left_out(selection: Selection, whole: LeftOut) -> LeftOut:
    """Count what a selection leaves out of the context, whose totals are `whole`."""
    return _less(whole, [decision.candidate for decision in selection.taken])


def receipt(selection: Selection, missing: LeftOut, *, begins: int, edge: int | None) -> tuple[ReceiptLine, ...]:
    """List every decision in the order it was made.

    The last line sums up the missing items that have no line of their own. `begins` is the seq where the context
    begins. If `edge` is given, slots before it were not read.
    """
    # A recalled message is not in the stored context, so it is not counted as missing from it.
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
    """The number of tokens that the context loses because this message is cut."""
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
