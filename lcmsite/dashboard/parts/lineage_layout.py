"""Compute the shapes of a lineage picture from a window and a width. Pure.

The x axis is the history, with the same width for each message. The y axis is the depth, with the messages at the
bottom. A summary is a bar above exactly the messages that it covers. The height of the bar shows its tokens. The
frontier is the line along the top of the active context. It covers every message once.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from conversations.store.paths import Branch
from lcmsite.dashboard.parts.lineage_shapes import BAND, Bar, Box, Bundle, Mark, Picture, Row, Stick, Stretch
from retrieval.describing.window import LineageWindow, WindowBundle, WindowSummary
from retrieval.types import MessageSpan

ROW_HEIGHT = 46
LEAST_BAR_HEIGHT, MOST_BAR_HEIGHT = 12, 38
MESSAGES_HEIGHT = 64
AXIS_HEIGHT = 26
LEFT = 74
RIGHT = 12
TOP = 10
# Bars narrower than this, in pixels, are drawn as bundles, because a pointer could not hit them.
NARROWEST_BAR = 3.0
MOST_TICKS = 9
# A bundle is no wider than this, so that a click on it zooms in.
WIDEST_BUNDLE = 24.0

# A first message, a last message, and the height of the frontier above this range.
Step = tuple[int, int, float]


def resolution(width: int) -> int:
    """How many parts of a window a picture of this width can show."""
    return max(1, int((width - LEFT - RIGHT) / NARROWEST_BAR))


def picture(window: LineageWindow, *, width: int, branches: Iterable[Branch] = ()) -> Picture:
    """The picture of a window; its width bounds the number of shapes."""
    canvas = _Canvas(window, width, tuple(_off_path(window, branches)))
    bars, bundles = canvas.bars()
    depths = range(canvas.deepest, -1, -1)
    return Picture(
        width=width,
        height=canvas.bottom + AXIS_HEIGHT,
        left=LEFT,
        right=width - RIGHT,
        bottom=canvas.bottom,
        rows=(
            *(Row(canvas.floor(depth), f"Depth {depth}" if depth else "Leaves") for depth in depths),
            Row(canvas.bottom, "Messages"),
        ),
        bars=tuple(bars),
        bundles=tuple(bundles),
        sticks=tuple(canvas.sticks()),
        densities=tuple(canvas.densities()) if window.messages is None else (),
        raw=canvas.stretches(window.raw),
        tail=canvas.tail(),
        gaps=canvas.stretches(gaps(window, canvas.off)),
        off=canvas.stretches(canvas.off),
        boundaries=canvas.boundaries(),
        ticks=tuple(Mark(canvas.x(seq - 0.5), seq, f"{seq:,}") for seq in _ticks(window.first_seq, window.last_seq)),
        frontier=canvas.frontier(),
    )


def _off_path(window: LineageWindow, branches: Iterable[Branch]) -> Iterator[MessageSpan]:
    """Ranges of the window's messages that are not on the path to the head."""
    for each in branches:
        first = max(each.first_seq, each.active_to_seq + 1, window.first_seq)
        last = min(each.last_seq, window.last_seq)
        if first <= last:
            yield MessageSpan(first, last)


def gaps(window: LineageWindow, off: Iterable[MessageSpan] = ()) -> Iterator[MessageSpan]:
    """Ranges of messages that are missing from the active context; normally none.

    Ranges in `off` are off the active path and need not be in the context.
    """
    if not window.message_count:
        return
    next_seq = window.first_seq
    shown = [(each.first_seq, each.last_seq) for each in window.summaries if each.active]
    for first, last in sorted([*shown, *((span.first_seq, span.last_seq) for span in (*window.raw, *off))]):
        if first > next_seq:
            yield MessageSpan(next_seq, min(first - 1, window.last_seq))
        next_seq = max(next_seq, last + 1)
        if next_seq > window.last_seq:
            return
    yield MessageSpan(next_seq, window.last_seq)


@dataclass(frozen=True)
class _Canvas:
    """Converts messages, depths and tokens of a window to pixels."""

    window: LineageWindow
    width: int
    off: tuple[MessageSpan, ...]

    @property
    def shown(self) -> list[WindowSummary | WindowBundle]:
        return [*self.window.summaries, *self.window.bundles]

    @cached_property
    def deepest(self) -> int:
        return max((each.depth for each in self.shown), default=0)

    @cached_property
    def most_tokens(self) -> int:
        return max((each.token_count for each in self.shown), default=1)

    @property
    def bottom(self) -> int:
        return TOP + (self.deepest + 1) * ROW_HEIGHT + MESSAGES_HEIGHT

    def x(self, edge: float) -> float:
        """The position of an edge between messages: message n lies between n - 1 and n."""
        first, last = self.window.first_seq, self.window.last_seq
        share = (edge - (first - 1)) / (last - first + 1)
        return round(LEFT + min(1.0, max(0.0, share)) * (self.width - LEFT - RIGHT), 2)

    def span(self, first_seq: int, last_seq: int) -> tuple[float, float]:
        """The left edge and the width of a range of messages, within the window."""
        x = self.x(first_seq - 1)
        return x, round(self.x(last_seq) - x, 2)

    def floor(self, depth: int) -> int:
        """The base line of a depth."""
        return TOP + (self.deepest - depth + 1) * ROW_HEIGHT

    def bar_height(self, tokens: int) -> float:
        return _height(tokens, self.most_tokens, LEAST_BAR_HEIGHT, MOST_BAR_HEIGHT)

    def bars(self) -> tuple[list[Bar], list[Bundle]]:
        """The summaries as bars; bars that are too narrow to point at form bundles."""
        bars: list[Bar] = []
        bundles: list[Bundle] = []
        for _, of_depth in groupby(sorted(self.window.summaries, key=_drawing_order), key=lambda each: each.depth):
            narrow: list[Bar] = []
            for bar in map(self.bar, of_depth):
                is_narrow = bar.width < NARROWEST_BAR
                if narrow and not (
                    is_narrow and bar.x - narrow[-1].right <= NARROWEST_BAR and bar.right - narrow[0].x <= WIDEST_BUNDLE
                ):
                    bundles.append(_bundle(narrow))
                    narrow = []
                (narrow if is_narrow else bars).append(bar)
            if narrow:
                bundles.append(_bundle(narrow))
        # Superseded summaries are drawn below those that replaced them.
        bars.sort(key=lambda bar: (not bar.summary.superseded, bar.summary.active))
        return bars, bundles + [self.bundle(each) for each in self.window.bundles]

    def bar(self, summary: WindowSummary) -> Bar:
        x, width = self.span(summary.first_seq, summary.last_seq)
        height = self.bar_height(summary.token_count)
        return Bar(summary=summary, x=x, y=self.floor(summary.depth) - height, width=width, height=height)

    def bundle(self, bundle: WindowBundle) -> Bundle:
        x, width = self.span(bundle.first_seq, bundle.last_seq)
        height = self.bar_height(bundle.token_count)
        return Bundle(
            depth=bundle.depth,
            first_seq=bundle.first_seq,
            last_seq=bundle.last_seq,
            count=bundle.summaries,
            x=x,
            y=self.floor(bundle.depth) - height,
            width=max(width, 1.0),
            height=height,
        )

    def sticks(self) -> Iterator[Stick]:
        messages = self.window.messages or ()
        most = max((message.token_count for message in messages), default=1)
        for message in messages:
            x, width = self.span(message.seq, message.seq)
            height = _height(message.token_count, most, 6, BAND - 4)
            gap = 1 if width > 4 else 0
            yield Stick(message=message, x=x, y=self.bottom - height, width=round(width - gap, 2), height=height)

    def densities(self) -> Iterator[Box]:
        leaves = [
            (each.first_seq, each.last_seq, each.source_tokens / (each.last_seq - each.first_seq + 1))
            for each in self.window.summaries
            if each.depth == 0 and not each.superseded
        ]
        leaves += [
            (each.first_seq, each.last_seq, each.source_tokens / each.messages)
            for each in self.window.bundles
            if each.depth == 0
        ]
        most = max((length for _, _, length in leaves), default=1.0)
        for first_seq, last_seq, length in sorted(leaves):
            x, width = self.span(first_seq, last_seq)
            height = _height(length, most, 0, BAND - 10)
            yield Box(x=x, y=self.bottom - height, width=width, height=height)

    def stretch(self, first_seq: int, last_seq: int) -> Stretch:
        x, width = self.span(first_seq, last_seq)
        return Stretch(first_seq, last_seq, x, max(width, 1.0))

    def stretches(self, spans: Iterable[MessageSpan]) -> tuple[Stretch, ...]:
        """The ranges, with adjacent ones drawn as one."""
        drawn: list[Stretch] = []
        for span in spans:
            stretch = self.stretch(span.first_seq, span.last_seq)
            if drawn and stretch.x - (drawn[-1].x + drawn[-1].width) < 1:
                stretch = self.stretch(drawn.pop().first_seq, span.last_seq)
            drawn.append(stretch)
        return tuple(drawn)

    def tail(self) -> Stretch | None:
        window = self.window
        if not window.message_count or window.tail_from_seq > window.last_seq:
            return None
        return self.stretch(max(window.tail_from_seq, window.first_seq), window.last_seq)

    def boundaries(self) -> tuple[Mark, ...]:
        """Marks where the host cut its context; a mark too close to the last is left out."""
        marks: list[Mark] = []
        for each in self.window.boundaries:
            if self.window.first_seq <= each.last_seq <= self.window.last_seq:
                mark = Mark(self.x(each.last_seq), each.last_seq, each.host_reference)
                if not marks or mark.x - marks[-1].x >= NARROWEST_BAR:
                    marks.append(mark)
        return tuple(marks)

    def frontier(self) -> str:
        """The frontier as an SVG path."""
        steps = [
            (each.first_seq, each.last_seq, self.floor(each.depth) - self.bar_height(each.token_count))
            for each in self.window.summaries
            if each.active
        ]
        raw = [(span.first_seq, span.last_seq, self.bottom - BAND) for span in self.window.raw]
        off = [(span.first_seq, span.last_seq, 0.0) for span in self.off]
        path: list[str] = []
        end = None
        for first, last, y in _side_by_side([*_without(steps, [*raw, *off]), *raw]):
            x, width = self.span(first, last)
            # Adjacent steps are joined by a vertical line. A gap between steps stays open.
            path.append(f"V{y:g}H{x + width:g}" if end == first - 1 else f"M{x:g} {y:g}H{x + width:g}")
            end = last
        return "".join(path)


def _height(value: float, most: float, low: int, high: int) -> float:
    """A height between low and high, on a logarithmic scale."""
    return round(low + (high - low) * math.log1p(value) / math.log1p(max(1, most)), 1)


def _drawing_order(summary: WindowSummary) -> tuple[int, int, int, str]:
    return summary.depth, summary.first_seq, summary.last_seq, summary.summary_id


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
        width=round(max(max(bar.right for bar in bars) - x, 1.0), 2),
        height=bars[0].y + bars[0].height - top,
    )


def _ticks(first: int, last: int) -> range:
    """The seqs to label: every 1st, 2nd, 5th, 10th, 20th, ..., few enough to read."""
    step = 1
    while (last - first) / step > MOST_TICKS:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return range(math.ceil(first / step) * step, last + 1, step)


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
    """The steps in order; each starts after the end of the previous one."""
    end = 0
    for first, last, y in sorted(steps):
        if last > end:
            yield max(first, end + 1), last, y
            end = last
