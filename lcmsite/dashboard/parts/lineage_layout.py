"""Lay out the picture of a lineage: a window and a width in, shapes out. Pure.

The x axis is the history, with the same width for each message. The y axis is the depth, with the messages at the
bottom. A summary is a bar above exactly the messages it covers, and its height shows its tokens. The frontier is the
line along the top of the active context: it covers every message once.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from lcmsite.dashboard.parts.lineage_shapes import BAND, Bar, Bundle, Density, Mark, Picture, Row, Stick, Stretch
from retrieval.describing.window import LineageWindow, WindowBundle, WindowSummary
from retrieval.types import MessageSpan

ROW = 46
BAR_LEAST, BAR_MOST = 12, 38
MESSAGES = 64
AXIS = 26
LEFT = 74
RIGHT = 12
TOP = 10
# Bars narrower than this, in pixels, are drawn as one bundle: they could not be pointed at.
TELLABLE = 3.0
MOST_TICKS = 9
# A bundle is no wider than this, so that a click on it zooms in.
WIDEST_BUNDLE = 24.0


@dataclass(frozen=True)
class _Scale:
    """From seqs to pixels: message n lies between n - 1 and n."""

    first: int
    last: int
    left: float
    width: float

    def x(self, edge: float) -> float:
        share = (edge - (self.first - 1)) / (self.last - self.first + 1)
        return round(self.left + min(1.0, max(0.0, share)) * self.width, 2)

    def span(self, first_seq: int, last_seq: int) -> tuple[float, float]:
        """Its left edge and its width, within the window."""
        x = self.x(first_seq - 1)
        return x, round(self.x(last_seq) - x, 2)


def resolution(width: int) -> int:
    """How many parts of a window a picture of this width can show."""
    return max(1, int((width - LEFT - RIGHT) / TELLABLE))


def picture(window: LineageWindow, *, width: int) -> Picture:
    """The picture of a window; its width bounds the number of shapes."""
    scale = _Scale(window.first_seq, window.last_seq, LEFT, width - LEFT - RIGHT)
    shown: list[WindowSummary | WindowBundle] = [*window.summaries, *window.bundles]
    deepest = max((each.depth for each in shown), default=0)
    most = max((each.token_count for each in shown), default=1)
    bottom = TOP + (deepest + 1) * ROW + MESSAGES
    bars, bundles = _drawn(window.summaries, scale, deepest, most)
    bundles += tuple(_bundled(each, scale, deepest, most) for each in window.bundles)
    return Picture(
        width=width,
        height=bottom + AXIS,
        left=LEFT,
        right=width - RIGHT,
        bottom=bottom,
        rows=tuple(Row(depth, _floor(depth, deepest), _name(depth)) for depth in range(deepest, -1, -1)),
        bars=bars,
        bundles=bundles,
        sticks=_sticks(window, scale, bottom),
        densities=_densities(window, scale, bottom) if window.messages is None else (),
        raw=_stretches(window.raw, scale),
        tail=_tail(window, scale),
        gaps=_stretches(gaps(window), scale),
        boundaries=_boundaries(window, scale),
        ticks=tuple(Mark(scale.x(seq - 0.5), seq, f"{seq:,}") for seq in _ticks(window.first_seq, window.last_seq)),
        frontier=_frontier(window, scale, deepest, bottom, most),
    )


def gaps(window: LineageWindow) -> Iterator[MessageSpan]:
    """Ranges of messages that the active context misses; there should be none."""
    if not window.message_count:
        return
    next_seq = window.first_seq
    shown = [(each.first_seq, each.last_seq) for each in window.summaries if each.active]
    for first, last in sorted([*shown, *((span.first_seq, span.last_seq) for span in window.raw)]):
        if first > next_seq:
            yield MessageSpan(next_seq, min(first - 1, window.last_seq))
        next_seq = max(next_seq, last + 1)
        if next_seq > window.last_seq:
            return
    yield MessageSpan(next_seq, window.last_seq)


def _drawn(
    summaries: Iterable[WindowSummary], scale: _Scale, deepest: int, most: int
) -> tuple[tuple[Bar, ...], tuple[Bundle, ...]]:
    bars: list[Bar] = []
    bundles: list[Bundle] = []
    for depth, of_depth in groupby(sorted(summaries, key=_place), key=lambda each: each.depth):
        narrow: list[Bar] = []
        for summary in of_depth:
            bar = _bar(summary, scale, _floor(depth, deepest), most)
            if bar.width < TELLABLE:
                is_apart = narrow and bar.x - (narrow[-1].x + narrow[-1].width) > TELLABLE
                if is_apart or (narrow and bar.x + bar.width - narrow[0].x > WIDEST_BUNDLE):
                    bundles.append(_bundle(narrow))
                    narrow = []
                narrow.append(bar)
            else:
                bars.append(bar)
                if narrow:
                    bundles.append(_bundle(narrow))
                    narrow = []
        if narrow:
            bundles.append(_bundle(narrow))
    # Superseded summaries are drawn below those that replaced them.
    bars.sort(key=lambda bar: (not bar.summary.superseded, bar.summary.active))
    return tuple(bars), tuple(bundles)


def _place(summary: WindowSummary) -> tuple[int, int, int, str]:
    return summary.depth, summary.first_seq, summary.last_seq, summary.summary_id


def _bar(summary: WindowSummary, scale: _Scale, floor: float, most: int) -> Bar:
    x, width = scale.span(summary.first_seq, summary.last_seq)
    height = _height(summary.token_count, most)
    kept = -1 if summary.retention is None else min(3, int(summary.retention * 4))
    return Bar(summary=summary, x=x, y=floor - height, width=width, height=height, retention=kept)


def _bundle(bars: Sequence[Bar]) -> Bundle:
    """The shape of adjacent bars of one depth."""
    x, top = bars[0].x, min(bar.y for bar in bars)
    return Bundle(
        depth=bars[0].summary.depth,
        first_seq=min(bar.summary.first_seq for bar in bars),
        last_seq=max(bar.summary.last_seq for bar in bars),
        count=len(bars),
        active=sum(bar.summary.active for bar in bars),
        x=x,
        y=top,
        width=round(max(max(bar.x + bar.width for bar in bars) - x, 1.0), 2),
        height=bars[0].y + bars[0].height - top,
    )


def _bundled(bundle: WindowBundle, scale: _Scale, deepest: int, most: int) -> Bundle:
    """The shape of a bundle of the window."""
    x, width = scale.span(bundle.first_seq, bundle.last_seq)
    height = _height(bundle.token_count, most)
    y = _floor(bundle.depth, deepest) - height
    return Bundle(
        depth=bundle.depth,
        first_seq=bundle.first_seq,
        last_seq=bundle.last_seq,
        count=bundle.summaries,
        active=0,
        x=x,
        y=y,
        width=max(width, 1.0),
        height=height,
    )


def _height(tokens: int, most: int) -> float:
    """The height of a bar, on a logarithmic scale."""
    share = math.log1p(tokens) / math.log1p(max(1, most))
    return round(BAR_LEAST + (BAR_MOST - BAR_LEAST) * share, 1)


def _floor(depth: int, deepest: int) -> float:
    """The base line of a depth."""
    return float(TOP + (deepest - depth + 1) * ROW)


def _name(depth: int) -> str:
    return "Leaves" if depth == 0 else f"Depth {depth}"


def _sticks(window: LineageWindow, scale: _Scale, bottom: float) -> tuple[Stick, ...]:
    messages = window.messages or ()
    most = max((message.token_count for message in messages), default=1)
    sticks = []
    for message in messages:
        x, width = scale.span(message.seq, message.seq)
        height = round(6 + (BAND - 10) * math.log1p(message.token_count) / math.log1p(max(1, most)), 1)
        gap = 1 if width > 4 else 0
        sticks.append(
            Stick(
                message_id=message.message_id,
                seq=message.seq,
                role=message.role,
                tokens=message.token_count,
                raw=message.raw,
                x=x,
                y=bottom - height,
                width=round(width - gap, 2),
                height=height,
            )
        )
    return tuple(sticks)


def _densities(window: LineageWindow, scale: _Scale, bottom: float) -> tuple[Density, ...]:
    leaves = [
        (each.first_seq, each.last_seq, each.source_tokens / (each.last_seq - each.first_seq + 1))
        for each in window.summaries
        if each.depth == 0 and not each.superseded
    ]
    leaves += [
        (each.first_seq, each.last_seq, each.source_tokens / each.messages)
        for each in window.bundles
        if each.depth == 0
    ]
    most = math.log1p(max([1.0, *(length for _, _, length in leaves)]))
    drawn = []
    for first_seq, last_seq, length in sorted(leaves):
        x, width = scale.span(first_seq, last_seq)
        height = round((BAND - 10) * math.log1p(length) / most, 1)
        drawn.append(Density(x=x, y=bottom - height, width=width, height=height))
    return tuple(drawn)


def _stretches(spans: Iterable[MessageSpan], scale: _Scale) -> tuple[Stretch, ...]:
    """The ranges, with adjacent ones drawn as one."""
    drawn: list[Stretch] = []
    for span in spans:
        stretch = _stretch(span, scale)
        if drawn and stretch.x - (drawn[-1].x + drawn[-1].width) < 1:
            stretch = _stretch(MessageSpan(drawn.pop().first_seq, span.last_seq), scale)
        drawn.append(stretch)
    return tuple(drawn)


def _stretch(span: MessageSpan, scale: _Scale) -> Stretch:
    x, width = scale.span(span.first_seq, span.last_seq)
    return Stretch(span.first_seq, span.last_seq, x, max(width, 1.0))


def _boundaries(window: LineageWindow, scale: _Scale) -> tuple[Mark, ...]:
    """Where the host has cut its context; of marks too close together, the first."""
    marks: list[Mark] = []
    for each in window.boundaries:
        if window.first_seq <= each.last_seq <= window.last_seq:
            mark = Mark(scale.x(each.last_seq), each.last_seq, each.host_reference)
            if not marks or mark.x - marks[-1].x >= TELLABLE:
                marks.append(mark)
    return tuple(marks)


def _tail(window: LineageWindow, scale: _Scale) -> Stretch | None:
    if not window.message_count or window.tail_from_seq > window.last_seq:
        return None
    return _stretch(MessageSpan(max(window.tail_from_seq, window.first_seq), window.last_seq), scale)


def _frontier(window: LineageWindow, scale: _Scale, deepest: int, bottom: float, most: int) -> str:
    """The frontier as an SVG path."""
    steps = [
        (each.first_seq, each.last_seq, _floor(each.depth, deepest) - _height(each.token_count, most))
        for each in window.summaries
        if each.active
    ]
    raw = [(span.first_seq, span.last_seq, bottom - BAND) for span in window.raw]
    return line_over(steps, raw, place=scale.span)


def _ticks(first: int, last: int) -> range:
    """Round seqs within the window, few enough to read."""
    step = 1
    while (last - first) / step > MOST_TICKS:
        step = _next_round(step)
    start = math.ceil(first / step) * step
    return range(start, last + 1, step)


def _next_round(step: int) -> int:
    """1, 2, 5, 10, 20, 50, ..."""
    return step * 5 // 2 if str(step)[0] == "2" else step * 2


# First message, last message and height of the line.
Step = tuple[int, int, float]


def line_over(
    summaries: Iterable[Step], raw: Sequence[Step], *, place: Callable[[int, int], tuple[float, float]]
) -> str:
    """An SVG path of steps; `place` gives the left edge and the width of a range."""
    path: list[str] = []
    end = None
    for first, last, y in _side_by_side([*_without(summaries, raw), *raw]):
        x, width = place(first, last)
        # A vertical stroke where two steps touch; a gap between them stays open.
        path.append(f"V{y:g}H{x + width:g}" if end == first - 1 else f"M{x:g} {y:g}H{x + width:g}")
        end = last
    return "".join(path)


def _without(steps: Iterable[Step], taken: Sequence[Step]) -> Iterator[Step]:
    """The steps without the ranges in `taken`: a summary may surround raw messages."""
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
    """The steps in order, each cut at the end of the one before."""
    end = 0
    for first, last, y in sorted(steps):
        if last > end:
            yield max(first, end + 1), last, y
            end = last
