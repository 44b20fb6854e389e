"""Choose which entries of a request stay when it is over its window. Pure.

A *start* is an entry before which a request may be cut: a model's text is never separated from its thoughts, nor a call
from its result. A cut goes far below the limit, so that it, and the cached prefix, can be reused by many requests.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lcmsite.gateway.window.types import Cut, Entry, Kind, WindowRequest

# The opening and the summaries get at most this part (1/n) each of what system and tools leave.
_OPENING_PART = 4
_SUMMARIES_PART = 4
LEAST_SUMMARY_TOKENS = 320
# A cut's tail fills at most this part (1/n) of its room, unless the current turn needs more.
_KEPT_PART = 2
# The tail begins with a whole turn, if it still fills this part (1/n) of that then.
_WHOLE_TURN_PART = 2
_LEAST_RESULT_TOKENS = 200
# If nothing fits, all results in the kept entries together get this part (1/n) of the limit.
_RESULTS_PART = 16

# Returns an entry with results of over so many tokens shortened.
Shortener = Callable[[Entry, int], Entry]


@dataclass(frozen=True)
class ChosenCut:
    """A cut, the tokens left for summaries, and whether all of it fits."""

    cut: Cut
    summary_tokens: int
    fits: bool


def choose_cut(request: WindowRequest, *, limit: int, shortened: Shortener) -> ChosenCut:
    """Choose the cut for a request over the limit.

    The current turn is kept whole if there is room for it. If not, its question and its newest steps are kept; if the
    newest step alone has no room, the tool results in what is kept are shortened.
    """
    entries = request.entries
    system = sum(entry.tokens for entry in entries if entry.kind is Kind.SYSTEM)
    left = max(0, limit - request.head_tokens - system)
    opening = opening_of(entries)
    if _tokens(entries[index] for index in opening) > left // _OPENING_PART:
        opening = range(0)
    left = max(0, left - _tokens(entries[index] for index in opening))
    summary_tokens = max(LEAST_SUMMARY_TOKENS, left // _SUMMARIES_PART)
    most = max(0, left - summary_tokens)
    for most_result in (None, *_most_result_tokens(most)):
        sized = entries if most_result is None else [shortened(entry, most_result) for entry in entries]
        tail = _Tail(sized, opening, nothing_left_out=most_result is not None)
        start = tail.chosen(most)
        if start is not None:
            return ChosenCut(tail.cut(start, most_result), summary_tokens, fits=True)
    start = tail.starts[-1] if tail.starts else opening.stop
    answers = sum(len(entry.answers) for entry in entries[start:])
    most_result = max(_LEAST_RESULT_TOKENS, limit // _RESULTS_PART // max(1, answers))
    return ChosenCut(tail.cut(start, most_result), summary_tokens, fits=False)


def opening_of(entries: Sequence[Entry]) -> range:
    """Return the indexes of the entries before the first that a model wrote."""
    first = next((place for place, entry in enumerate(entries) if entry.kind in (Kind.MODEL, Kind.RESULT)), None)
    return range(first or 0)


def starts_of(entries: Sequence[Entry]) -> list[int]:
    """Return the indexes before which a request may be cut, in order."""
    open_until = _last_answers(entries)
    starts = []
    before: Entry | None = None
    reach = -1
    for place, entry in enumerate(entries):
        if entry.kind is not Kind.SYSTEM:
            if reach < place and entry.kind is not Kind.RESULT and not _goes_on(before, entry):
                starts.append(place)
            before = entry
        reach = max(reach, open_until.get(place, place))
    return starts


def _goes_on(before: Entry | None, entry: Entry) -> bool:
    """Whether an entry and the one before are of one answer or one message."""
    if before is None:
        return False
    is_answer = before.kind is entry.kind is Kind.MODEL
    return is_answer or (entry.seq is not None and entry.seq == before.seq)


def _last_answers(entries: Sequence[Entry]) -> dict[int, int]:
    """Map each entry with calls to the index of the last of their results.

    Ids are not unique in a history: an answer belongs to the latest call of its id.
    """
    called_at: dict[str, int] = {}
    reach: dict[int, int] = {}
    for place, entry in enumerate(entries):
        called_at.update(dict.fromkeys(entry.calls, place))
        for answer in entry.answers:
            if answer in called_at:
                reach[called_at[answer]] = place
    return reach


def _tokens(entries: Iterable[Entry]) -> int:
    return sum(entry.tokens for entry in entries if entry.kind is not Kind.SYSTEM)


def _most_result_tokens(most: int) -> Iterator[int]:
    """Yield limits for the tokens of a result, to be tried from the longest down."""
    size = most // 2
    while size > _LEAST_RESULT_TOKENS:
        yield size
        size //= 2
    yield _LEAST_RESULT_TOKENS


class _Tail:
    """The possible tails behind the opening, and the tokens of each."""

    def __init__(self, entries: Sequence[Entry], opening: range, *, nothing_left_out: bool) -> None:
        self.entries = entries
        self.opening = opening
        # Shortening results may be enough: then the tail can begin right behind the opening.
        first = opening.stop if nothing_left_out else opening.stop + 1
        possible = starts_of(entries)
        self.starts = [start for start in possible if start >= first]
        if nothing_left_out and opening.stop < len(entries) and opening.stop not in self.starts:
            self.starts.insert(0, opening.stop)
        self.turns = [start for start in possible if self._begins_turn(start)]
        costs = (0 if entry.kind is Kind.SYSTEM else entry.tokens for entry in reversed(entries))
        self._behind = [0, *accumulate(costs)][::-1]

    def chosen(self, most: int) -> int | None:
        """Return the index at which the tail begins; None if nothing fits."""
        goal = most // _KEPT_PART
        near = [start for start in self.starts if self.needed(start) <= goal]
        turn = self.turns[-1] if self.turns else None
        if turn in self.starts and self.needed(turn) <= most and (not near or turn < near[0]):
            return turn
        if near:
            whole = (start for start in near if start in self.turns and self.needed(start) >= goal // _WHOLE_TURN_PART)
            return next(whole, near[0])
        return next((start for start in self.starts[-1:] if self.needed(start) <= most), None)

    def needed(self, start: int) -> int:
        """Return the tokens of all entries from here on, and of their question."""
        return self._behind[start] + _tokens(self.entries[place] for place in self.question_of(start))

    def question_of(self, start: int) -> range:
        """Return the indexes of the question of a turn that is cut in the middle here."""
        if self.entries[start].kind is Kind.QUESTION:
            return range(0)
        earlier = bisect_left(self.turns, start)
        if not earlier or self.turns[earlier - 1] < self.opening.stop:
            return range(0)
        begin = end = self.turns[earlier - 1]
        while self.entries[end].kind in (Kind.QUESTION, Kind.SYSTEM):
            end += 1
        return range(begin, end)

    def cut(self, start: int, most_result: int | None) -> Cut:
        """Build the cut whose tail begins here."""
        pinned = [self.entries[place] for place in self.question_of(start)]
        opening = [self.entries[place].seq or 0 for place in self.opening]
        is_all = start <= self.opening.stop or start >= len(self.entries)
        return Cut(
            opening_seq=max(opening, default=0),
            pinned_seqs=tuple(entry.seq or 0 for entry in pinned if entry.kind is not Kind.SYSTEM),
            first_seq=None if is_all else self.entries[start].seq,
            most_result_tokens=most_result,
            newest_seq=max((entry.seq or 0 for entry in self.entries), default=0),
        )

    def _begins_turn(self, place: int) -> bool:
        if self.entries[place].kind is not Kind.QUESTION:
            return False
        before = (entry.kind for entry in reversed(self.entries[:place]) if entry.kind is not Kind.SYSTEM)
        return next(before, None) is not Kind.QUESTION
