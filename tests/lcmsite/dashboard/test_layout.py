"""The picture of a lineage shows everything once, where it belongs, whatever the history."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from compaction.types import BoundaryRecord
from conversations.types import Level, Role
from lcmsite.dashboard.parts.lineage_layout import LEFT, NARROWEST_BAR, RIGHT, WIDEST_BUNDLE, gaps, picture
from lcmsite.dashboard.parts.lineage_shapes import BAND
from retrieval.describing.window import LineageWindow, WindowBundle, WindowMessage, WindowSummary
from retrieval.types import MessageSpan

WIDTH = 1000
STROKE = re.compile(r"([A-Za-z])([^A-Za-z]*)")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_summary(first: int, last: int, *, depth: int = 0, tokens: int = 100, active: bool = True, **changes: object):
    values = {
        "summary_id": f"sum_{depth}_{first}_{last}",
        "depth": depth,
        "first_seq": first,
        "last_seq": last,
        "token_count": tokens,
        "source_tokens": 1000,
        "level": Level.NORMAL,
        "confidence": 0.7,
        "confidence_reason": "single-memory",
        "retention": 0.8,
        "is_degraded": False,
        "active": active,
        "superseded": False,
        "run_id": "run_1",
        "created_at": NOW,
    }
    return WindowSummary(**{**values, **changes})  # type: ignore[arg-type]


def a_window(first: int, last: int, *summaries: WindowSummary, raw: tuple[MessageSpan, ...] = (), **changes: object):
    values = {
        "conversation": None,
        "pressure": None,
        "first_seq": first,
        "last_seq": last,
        "message_count": last,
        "tail_from_seq": last,
        "summaries": summaries,
        "raw": raw,
        "messages": None,
        "runs": (),
    }
    return LineageWindow(**{**values, **changes})  # type: ignore[arg-type]


@st.composite
def windows(draw: st.DrawFn) -> LineageWindow:
    """Leaves side by side, some merged into a level above, a raw end, looked at through any window."""
    sizes = draw(st.lists(st.integers(1, 400), min_size=1, max_size=40))
    summaries, end = [], 0
    for size in sizes:
        summaries.append(a_summary(end + 1, end + size, tokens=draw(st.integers(1, 5000)), active=False))
        end += size
    merged = draw(st.integers(0, len(summaries)))
    active = [a_summary(each.first_seq, each.last_seq) for each in summaries[merged:]]
    if merged:
        active.append(a_summary(1, summaries[merged - 1].last_seq, depth=1))
    raw = draw(st.integers(1, 30))
    first = draw(st.integers(1, end))
    last = draw(st.integers(first, end + raw))
    seen = [each for each in [*summaries[:merged], *active] if each.first_seq <= last and each.last_seq >= first]
    spans = (MessageSpan(max(end + 1, first), last),) if last > end else ()
    return a_window(first, last, *seen, raw=spans, message_count=end + raw, tail_from_seq=end + raw)


@given(windows())
def test_every_summary_is_drawn_once_within_the_picture(window):
    drawn = picture(window, width=WIDTH)

    assert len(drawn.bars) + sum(bundle.count for bundle in drawn.bundles) == len(window.summaries)
    for shape in (*drawn.bars, *drawn.bundles):
        assert shape.x >= LEFT and shape.x + shape.width <= WIDTH - RIGHT + 1
        assert shape.y >= 0 and shape.y + shape.height <= drawn.bottom
        assert shape.height > 0 and shape.width > 0
    for depth in {bar.summary.depth for bar in drawn.bars}:
        spans = sorted((bar.x, bar.right) for bar in drawn.bars if bar.summary.depth == depth)
        assert all(before[1] <= after[0] + 0.05 for before, after in zip(spans, spans[1:], strict=False))
    assert len(drawn.ticks) <= 11
    assert all(window.first_seq <= tick.seq <= window.last_seq for tick in drawn.ticks)


@given(windows())
def test_a_whole_history_has_no_gap_and_a_frontier_from_end_to_end(window):
    drawn = picture(window, width=WIDTH)

    assert drawn.gaps == ()
    assert drawn.frontier.startswith(f"M{LEFT} ")
    assert drawn.frontier.endswith(f"H{WIDTH - RIGHT}")


def strokes(path: str) -> list[tuple[str, list[float]]]:
    found = [(letter, [float(each) for each in numbers.split()]) for letter, numbers in STROKE.findall(path)]
    assert "".join(f"{letter}{' '.join(f'{each:g}' for each in numbers)}" for letter, numbers in found) == path
    return found


def spans_of(path: str) -> list[tuple[float, float, float]]:
    """The horizontal strokes of a frontier: from, to, and how high."""
    spans, x, y = [], 0.0, 0.0
    for letter, numbers in strokes(path):
        if letter == "M":
            x, y = numbers
        elif letter == "V":
            [y] = numbers
        else:
            spans.append((x, numbers[0], y))
            [x] = numbers
    return spans


@given(windows(), st.lists(st.integers(1, 400), max_size=12))
def test_the_frontier_goes_in_steps_and_never_back_whatever_stands_raw_among_summaries(window, among):
    spans = [MessageSpan(seq, seq) for seq in sorted(set(among)) if window.first_seq <= seq <= window.last_seq]
    taken = {span.first_seq for span in spans}
    raw = (*spans, *(span for span in window.raw if not taken & set(range(span.first_seq, span.last_seq + 1))))
    drawn = picture(replace(window, raw=raw), width=WIDTH)

    found = spans_of(drawn.frontier)

    assert {letter for letter, _ in strokes(drawn.frontier)} <= set("MHV")
    assert all(begin <= end for begin, end, _ in found)
    assert all(before[1] <= after[0] + 0.02 for before, after in zip(found, found[1:], strict=False))


def test_a_raw_message_inside_a_summary_is_a_step_down_and_up_again_and_what_is_missing_has_no_line():
    broken = picture(a_window(1, 100, a_summary(1, 40), a_summary(61, 100)), width=1086)
    drawn = picture(a_window(1, 100, a_summary(1, 100), raw=(MessageSpan(50, 50),)), width=1086)
    level, [bar] = drawn.bottom - BAND, drawn.bars

    assert spans_of(drawn.frontier) == [(74.0, 564.0, bar.y), (564.0, 574.0, level), (574.0, 1074.0, bar.y)]
    assert drawn.frontier.count("M") == 1
    assert [(begin, end) for begin, end, _ in spans_of(broken.frontier)] == [(74.0, 474.0), (674.0, 1074.0)]


def test_what_nobody_reaches_is_a_gap():
    merged = a_summary(1, 100, active=False)
    window = a_window(1, 100, merged, a_summary(11, 20), a_summary(31, 60), raw=(MessageSpan(71, 90),))

    assert list(gaps(window)) == [MessageSpan(1, 10), MessageSpan(21, 30), MessageSpan(61, 70), MessageSpan(91, 100)]
    assert list(gaps(a_window(1, 1, message_count=0))) == []


def test_more_tokens_make_a_taller_bar_and_a_deeper_summary_stands_higher():
    drawn = picture(
        a_window(1, 20, a_summary(1, 10, tokens=50), a_summary(11, 20, tokens=900), a_summary(1, 20, depth=1)),
        width=WIDTH,
    )
    low, tall, deep = sorted(drawn.bars, key=lambda bar: (bar.summary.depth, bar.x))

    assert low.height < tall.height
    assert deep.y + deep.height < tall.y + tall.height
    assert low.x + low.width == tall.x


def test_summaries_too_narrow_to_point_at_are_drawn_together_as_far_as_a_click_can_lead_to_less():
    many = [a_summary(10 * n + 1, 10 * n + 10) for n in range(1_000)]

    drawn = picture(a_window(1, 10_000, *many), width=WIDTH)

    assert drawn.bars == ()
    assert sum(bundle.count for bundle in drawn.bundles) == 1_000
    assert [bundle.first_seq for bundle in drawn.bundles[1:]] == [bundle.last_seq + 1 for bundle in drawn.bundles[:-1]]
    assert all(bundle.width <= WIDEST_BUNDLE for bundle in drawn.bundles)
    assert len(drawn.bundles) <= 1 + WIDTH / (WIDEST_BUNDLE - NARROWEST_BAR)


def test_what_comes_in_bundles_is_drawn_as_bundles_at_its_depth():
    bundle = WindowBundle(
        depth=1, first_seq=1, last_seq=40, summaries=9, token_count=50, source_tokens=900, messages=40
    )

    drawn = picture(a_window(1, 4_000, a_summary(41, 4_000), bundles=(bundle,)), width=WIDTH)

    [only], [bar] = drawn.bundles, drawn.bars
    assert (only.depth, only.first_seq, only.last_seq, only.count, only.active) == (1, 1, 40, 9, 0)
    assert only.y + only.height < bar.y + bar.height


def test_marks_and_stretches_that_nobody_could_tell_apart_are_drawn_as_one():
    raw = tuple(MessageSpan(seq, seq) for seq in range(1, 4_000, 2))
    boundaries = tuple(
        BoundaryRecord(conversation_id=1, host_reference=f"cut {seq}", last_seq=seq, recorded_at=NOW, metadata={})
        for seq in range(1, 4_000, 2)
    )

    drawn = picture(a_window(1, 4_000, raw=raw, boundaries=boundaries), width=WIDTH)

    assert len(drawn.raw) == 1 and (drawn.raw[0].first_seq, drawn.raw[0].last_seq) == (1, 3_999)
    assert len(drawn.boundaries) <= WIDTH / NARROWEST_BAR
    assert len(drawn.gaps) <= WIDTH


def test_messages_are_told_one_by_one_where_there_are_few():
    messages = tuple(WindowMessage(seq, seq, Role.USER, 10 * seq, raw=seq > 5) for seq in range(1, 11))

    drawn = picture(a_window(1, 10, a_summary(1, 5), raw=(MessageSpan(6, 10),), messages=messages), width=WIDTH)

    assert [stick.message.seq for stick in drawn.sticks] == list(range(1, 11))
    assert [stick.height for stick in drawn.sticks] == sorted(stick.height for stick in drawn.sticks)
    assert drawn.tail is not None and drawn.tail.first_seq == 10
