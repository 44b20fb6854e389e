"""Draw the shapes of a lineage as SVG.

This module uses no template, because a picture has hundreds of shapes. It writes only numbers, ids that LCM generated
and fixed words, never content of users, so only the URL needs escaping.
"""

from __future__ import annotations

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from lcmsite.dashboard.parts.lineage_shapes import Bar, Box, Bundle, Picture, Stick
from lcmsite.dashboard.templatetags.lcm_tags import short

# Minimum width of a bar with a label, in pixels.
ROOM_FOR_WORDS = 64


def shapes(picture: Picture, *, transcript: str) -> SafeString:
    """The SVG of messages, bundles and bars; a message links into the transcript."""
    address = escape(transcript)
    path = "".join(f"M{box.x:g} {box.y:g}h{box.width:g}v{box.height:g}h-{box.width:g}z" for box in picture.densities)
    drawn = [f'<path class="density" d="{path}"/>' if path else ""]
    drawn += [_stick(stick, address) for stick in picture.sticks]
    drawn += map(_bundle, picture.bundles)
    drawn += map(_bar, picture.bars)
    return mark_safe("\n".join(drawn))


def _stick(stick: Stick, transcript: str) -> str:
    message, raw = stick.message, " is-raw" if stick.message.raw else ""
    return (
        f'<a href="{transcript}?seq={message.seq}#m{message.seq}" tabindex="-1">'
        f'<rect class="stick {message.role}{raw}" {_box(stick)}>'
        f"<title>Message {message.seq:,}, {message.role}, {message.token_count:,} tokens</title></rect></a>"
    )


def _bundle(bundle: Bundle) -> str:
    active = ' class="active"' if bundle.active else ""
    return (
        f'<g class="bundle" data-from="{bundle.first_seq}" data-to="{bundle.last_seq}"><rect{active} {_box(bundle)}>'
        f"<title>{bundle.count:,} summaries of depth {bundle.depth}, messages {bundle.first_seq:,} to"
        f" {bundle.last_seq:,}: zoom in to see each</title></rect></g>"
    )


def _bar(bar: Bar) -> str:
    summary = bar.summary
    marks = [str(summary.level), *(name for name in ("active", "superseded") if getattr(summary, name))]
    marks += ["degraded"] if summary.is_degraded else []
    # How many identifiers the summary kept, from 0 (few) to 3; -1 if its sources had none.
    marks.append(f"kept-{-1 if summary.retention is None else min(3, int(summary.retention * 4))}")
    kept = "" if summary.retention is None else f", {summary.retention:.0%} kept"
    late = ", superseded" if summary.superseded else ""
    span = f"messages {summary.first_seq:,} to {summary.last_seq:,}"
    words, tokens = "", short(summary.token_count)
    if bar.width >= ROOM_FOR_WORDS:
        words = f'<text class="bar-text" x="{bar.x + 5:g}" y="{bar.y + bar.height - 4:g}">{tokens}</text>'
    return (
        f'<g class="node" tabindex="0" role="button" data-node="{summary.summary_id}" data-from="{summary.first_seq}"'
        f' data-to="{summary.last_seq}"'
        f' aria-label="Summary of {span}, depth {summary.depth}, {summary.level}, {tokens} tokens">'
        f'<rect class="bar {" ".join(marks)}" rx="2" {_box(bar)}><title>{summary.summary_id}: {span},'
        f" {summary.token_count:,} of {summary.source_tokens:,} tokens, {summary.level}{kept}{late}</title></rect>"
        f"{words}</g>"
    )


def _box(shape: Box) -> str:
    return f'x="{shape.x:g}" y="{shape.y:g}" width="{shape.width:g}" height="{shape.height:g}"'
