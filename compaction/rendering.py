"""What a model sees of a summary, and what a summarizer sees of a message. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from conversations.types import NewSummary

# A run of base64 this long is an image or an archive, never something to be said again in a summary.
_BASE64 = re.compile(r"[A-Za-z0-9+/]{400,}={0,2}")


def render_summary(summary: NewSummary) -> str:
    """The summary as an element that says what it is and how to open it.

    The text is escaped: whatever a conversation contained, it cannot end the element or pass for another one.
    """
    # Numbers, times and words of ours need no quoting; it runs for every summary of every context.
    return (
        f'<summary id={quoteattr(summary.summary_id)} kind="{summary.kind}" depth="{summary.depth}"'
        f' messages="{summary.first_seq}-{summary.last_seq}"'
        f' from="{_time(summary.earliest_at)}" to="{_time(summary.latest_at)}" trust="untrusted">\n'
        f"{escape(summary.content)}\n</summary>"
    )


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="minutes").replace("+00:00", "Z")


def readable_source(text: str) -> str:
    """A message's text as a summarizer should read it: what only a machine can read is named, not quoted."""
    return _BASE64.sub(lambda found: f"[base64, {len(found[0])} characters]", text)
