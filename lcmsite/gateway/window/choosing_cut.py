"""Choose which entries of a request stay when it is over its window. Pure.

A *start* is an entry before which a request may be cut: a model's text is never separated from its thoughts, nor a call
from its result. A cut leaves far fewer tokens than the limit, so that many requests can reuse it and the cached prefix.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lcmsite.gateway.window.types import Cut, Entry, Kind, WindowRequest

# The opening, the later system messages and the summaries each get at most this part (1/n) of the tokens that are left.
_OPENING_PART = 4
_SYSTEM_PART = 4
_SUMMARIES_PART = 4
LEAST_SUMMARY_TOKENS = 320
# A cut's tail fills at most this part (1/n) of the tokens it may have, unless the current turn needs more.
_KEPT_PART = 2
# The tail begins with a whole turn if it then still fills this part (1/n) of that share.
_WHOLE_TURN_PART = 2
_LEAST_RESULT_TOKENS = 200
# If nothing fits, all results in the kept entries together get this part (1/n) of the limit.
_RESULTS_PART = 16

# Returns an entry in which results of more than this many tokens are shortened.
ShortenEntry = Callable[[Entry, int], Entry]


@dataclass(frozen=True)
class ChosenCut:
    """A cut, the tokens left for summaries, and whether all of it fits."""

    cut: Cut
    summary_tokens: int
    fits: bool


def choose_cut(request: WindowRequest, *, limit: int, shorten_entry: ShortenEntry) -> ChosenCut:
    """Choose the cut for a request over the limit.

    The current turn is kept whole if it fits. If not, its question and its newest steps are kept. If even the newest
    step does not fit, the tool results in the kept entries are shortened.
    """
    entries = request.entries
    opening = opening_of(entries)
    instructions = sum(entries[index].tokens for index in opening if entries[index].kind is Kind.SYSTEM)
    room = max(0, limit - request.head_tokens - instructions)
    if _count_tokens(entries[index] for index in opening) > room // _OPENING_PART:
        opening = range(0)
    room = max(0, room - _count_tokens(entries[index] for index in opening))
    summary_tokens = max(LEAST_SUMMARY_TOKENS, room // _SUMMARIES_PART)
    room_of_tail = max(0, room - summary_tokens)
    for most_result in (None, *_result_limits(room_of_tail)):
        sized = entries if most_result is None else [shorten_entry(entry, most_result) for entry in entries]
        tails = _Tails(sized, opening, room // _SYSTEM_PART, nothing_left_out=most_result is not None)
        start = tails.choose_start(room_of_tail)
        if start is not None:
            return ChosenCut(tails.build_cut(start, most_result), summary_tokens, fits=True)
    start = tails.starts[-1] if tails.starts else opening.stop
    answers = sum(len(entry.answers) for entry in entries[start:])
    most_result = max(_LEAST_RESULT_TOKENS, limit // _RESULTS_PART // max(1, answers))
    return ChosenCut(tails.build_cut(start, most_result), summary_tokens, fits=False)


def opening_of(entries: Sequence[Entry]) -> range:
    """Return the indexes of the entries before the first that a model wrote."""
    first = next((index for index, entry in enumerate(entries) if entry.kind in (Kind.MODEL, Kind.RESULT)), None)
    return range(first or 0)


def question_at(entries: Sequence[Entry], begin: int) -> range:
    """Return the indexes of a question from `begin` on, with its system messages."""
    end = begin
    while end < len(entries) and entries[end].kind in (Kind.QUESTION, Kind.SYSTEM):
        end += 1
    return range(begin, end)


def starts_of(entries: Sequence[Entry]) -> list[int]:
    """Return the indexes before which a request may be cut, in order."""
    last_answers = _last_answers(entries)
    starts = []
    previous: Entry | None = None
    open_until = -1
    for index, entry in enumerate(entries):
        if entry.kind is not Kind.SYSTEM:
            if open_until < index and entry.kind is not Kind.RESULT and not _continues(previous, entry):
                starts.append(index)
            previous = entry
        open_until = max(open_until, last_answers.get(index, index))
    return starts


def _continues(previous: Entry | None, entry: Entry) -> bool:
    """Whether an entry and the one before belong to one answer or one message."""
    if previous is None:
        return False
    is_answer = previous.kind is entry.kind is Kind.MODEL
    return is_answer or (entry.seq is not None and entry.seq == previous.seq)


def _last_answers(entries: Sequence[Entry]) -> dict[int, int]:
    """Map each entry with calls to the index of the last of their results.

    Ids are not unique in a history: a result belongs to the latest call with its id.
    """
    called_at: dict[str, int] = {}
    last_answers: dict[int, int] = {}
    for index, entry in enumerate(entries):
        called_at.update(dict.fromkeys(entry.calls, index))
        for answer in entry.answers:
            if answer in called_at:
                last_answers[called_at[answer]] = index
    return last_answers


def _count_tokens(entries: Iterable[Entry]) -> int:
    return sum(entry.tokens for entry in entries if entry.kind is not Kind.SYSTEM)


def _result_limits(most: int) -> Iterator[int]:
    """Yield limits for the tokens of a result, to be tried from the longest down."""
    size = most // 2
    while size > _LEAST_RESULT_TOKENS:
        yield size
        size //= 2
    yield _LEAST_RESULT_TOKENS


class _Tails:
    """The possible tails after the opening, and the tokens of each."""

    def __init__(self, entries: Sequence[Entry], opening: range, most_system: int, *, nothing_left_out: bool) -> None:
        self.entries = entries
        self.opening = opening
        self.most_system = most_system
        # Shortening results may be enough: then the tail can begin right after the opening.
        first = opening.stop if nothing_left_out else opening.stop + 1
        possible = starts_of(entries)
        self.starts = [start for start in possible if start >= first]
        if nothing_left_out and opening.stop < len(entries) and opening.stop not in self.starts:
            self.starts.insert(0, opening.stop)
        self.turns = [start for start in possible if self._begins_turn(start)]
        self._tokens_behind = [0, *accumulate(entry.tokens for entry in reversed(entries))][::-1]
        instructions = opening_of(entries)
        later_system = (
            entry.tokens
            if entry.kind is Kind.SYSTEM and entry.tokens <= most_system and index not in instructions
            else 0
            for index, entry in enumerate(entries)
        )
        self._system_before = [0, *accumulate(later_system)]

    def choose_start(self, most: int) -> int | None:
        """Return the index at which the tail begins; None if nothing fits."""
        near = [start for start in self.starts if self.needed(start) <= self._goal(start, most)]
        turn = self.turns[-1] if self.turns else None
        if turn in self.starts and self.needed(turn) <= self._room(turn, most) and (not near or turn < near[0]):
            return turn
        if near:
            whole = (
                start
                for start in near
                if start in self.turns and self.needed(start) >= self._goal(start, most) // _WHOLE_TURN_PART
            )
            return next(whole, near[0])
        return next((start for start in self.starts[-1:] if self.needed(start) <= self._room(start, most)), None)

    def needed(self, start: int) -> int:
        """Return the tokens of all entries from `start` on, and of their question."""
        return self._tokens_behind[start] + sum(self.entries[index].tokens for index in self.question_of(start))

    def _room(self, start: int, most: int) -> int:
        """Return the tokens that the system messages before `start` leave of `most`."""
        return most - min(self.most_system, self._system_before[start])

    def _goal(self, start: int, most: int) -> int:
        return self._room(start, most) // _KEPT_PART

    def question_of(self, start: int) -> range:
        """Return the indexes of the turn's question, if `start` is within a turn."""
        if self.entries[start].kind is Kind.QUESTION:
            return range(0)
        earlier = bisect_left(self.turns, start)
        if not earlier or self.turns[earlier - 1] < self.opening.stop:
            return range(0)
        return question_at(self.entries, self.turns[earlier - 1])

    def build_cut(self, start: int, most_result: int | None) -> Cut:
        """Build the cut whose tail begins at `start`."""
        pinned = [self.entries[index] for index in self.question_of(start)]
        opening = [self.entries[index].seq or 0 for index in self.opening]
        is_uncut = start <= self.opening.stop or start >= len(self.entries)
        return Cut(
            opening_seq=max(opening, default=0),
            pinned_seqs=tuple(entry.seq or 0 for entry in pinned if entry.kind is not Kind.SYSTEM),
            first_seq=None if is_uncut else self.entries[start].seq,
            most_result_tokens=most_result,
            most_system_tokens=self.most_system,
            made_at_seq=max((entry.seq or 0 for entry in self.entries), default=0),
        )

    def _begins_turn(self, index: int) -> bool:
        if self.entries[index].kind is not Kind.QUESTION:
            return False
        before = (entry.kind for entry in reversed(self.entries[:index]) if entry.kind is not Kind.SYSTEM)
        return next(before, None) is not Kind.QUESTION
