"""The line along the top of what a model sees, as steps. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

# From which message, to which, and how high the line is over them.
Step = tuple[int, int, float]


def line_over(
    summaries: Iterable[Step], raw: Sequence[Step], *, place: Callable[[int, int], tuple[float, float]]
) -> str:
    """An SVG path of horizontal and vertical strokes; `place` tells where a stretch begins and how wide it is."""
    path: list[str] = []
    end = None
    for first, last, y in _side_by_side([*_without(summaries, raw), *raw]):
        x, width = place(first, last)
        # Up or down where the one before ends; over messages that are not shown there is no line.
        path.append(f"V{y:g}H{x + width:g}" if end == first - 1 else f"M{x:g} {y:g}H{x + width:g}")
        end = last
    return "".join(path)


def _without(steps: Iterable[Step], taken: Sequence[Step]) -> Iterator[Step]:
    """The steps less what others take: a summary may begin before a raw message and end behind it."""
    taken = sorted(taken)
    starts = [first for first, _, _ in taken]
    for first, last, y in steps:
        at = first
        for begin, end, _ in taken[max(0, bisect_right(starts, first) - 1) : bisect_right(starts, last)]:
            if begin > at:
                yield at, begin - 1, y
            at = max(at, end + 1)
        if at <= last:
            yield at, last, y


def _side_by_side(steps: Iterable[Step]) -> Iterator[Step]:
    """In order, each from where the one before it ends."""
    end = 0
    for first, last, y in sorted(steps):
        if last > end:
            yield max(first, end + 1), last, y
            end = last
