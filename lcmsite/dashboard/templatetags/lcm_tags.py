"""Template tags and filters: numbers, times, states, links and permissions."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from conversations.humanize import words
from integrity.types import Risk
from lcmsite.dashboard.navigation import menu, tabs
from lcmsite.dashboard.parts.differences import difference
from lcmsite.dashboard.parts.findings import effect_of, meaning_of, url_of
from lcmsite.dashboard.parts.marked_text import marked_spans
from lcmsite.dashboard.visit import Visit
from retrieval.assembly.types import AssemblyReason
from retrieval.map.types import PauseReason
from retrieval.types import Match, Snippet

register = template.Library()

_DAYS_SHOWN = 30
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_STATES = {
    "good": "compacted succeeded completed done clean closed ready applied active approved ok warm",
    "warn": "waiting queued running paused half_open exhausted degraded proposed stale soft warning deterministic"
    " aggressive cold expired leased undone stopped unavailable probing",
    "bad": "failed error critical open hard refused revoked over_budget quarantined erased abandoned",
}
_TONE_OF = {state: tone for tone, states in _STATES.items() for state in states.split()}


for tag in (menu, tabs, difference):
    register.simple_tag(tag)
for text_filter in (meaning_of, effect_of, words):
    register.filter(text_filter)


@register.filter
def may(visit: Visit, tool: str) -> bool:
    return visit.may(tool)


@register.simple_tag(takes_context=True)
def page_url(context: Context, page_name: str, **path: Any) -> str:
    return reverse(page_name, kwargs={"workspace": context["visit"].workspace.name, **path})


@register.simple_tag(takes_context=True)
def message_url(context: Context, conversation_id: int, seq: int) -> str:
    return f"{page_url(context, 'transcript', conversation_id=conversation_id)}?seq={seq}#m{seq}"


@register.filter
def number(value: Any) -> str:
    """1234567 as 1,234,567; None as a dash."""
    return "–" if value is None else f"{value:,}"


@register.filter
def short(value: int | float | None) -> str:
    """A large number with few digits: 93.6k, 1.2M."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value is not None and abs(value) >= size:
            return f"{value / size:.1f}".rstrip("0").rstrip(".") + letter
    return number(value)


@register.filter
def size(value: int | None) -> str:
    """A number of bytes as 3.4 MiB."""
    for size, unit in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if value is not None and value >= size:
            return f"{value / size:.1f} {unit}"
    return "–" if value is None else f"{value} B"


@register.filter
def percent(share: float | None) -> str:
    """0.734 as 73 %."""
    return "–" if share is None else f"{share:.0%}".replace("%", " %")


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """How long ago, or a date; the tooltip has the exact time."""
    if moment is None:
        return "–"
    seconds = int((timezone.now() - moment).total_seconds())
    ahead, seconds = seconds < 0, abs(seconds)
    span = next((f"{seconds // size} {unit}" for size, unit in _UNITS if seconds >= size), "now")
    words = span if span == "now" else f"in {span}" if ahead else f"{span} ago"
    exact = moment.astimezone(timezone.get_default_timezone()).strftime("%Y-%m-%d %H:%M:%S UTC")
    if seconds > _DAYS_SHOWN * 86_400:
        words = exact[:10]
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, words)


@register.filter
def until(start: datetime, end: datetime) -> str:
    """The time between two moments: 340 ms, 2.4 s, 3 min 20 s."""
    seconds = max(0.0, (end - start).total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(int(seconds), 60)
    return f"{minutes:,} min {left} s"


@register.filter
def plain(value: Any) -> Any:
    """The value of a setting; True, False and empty values as yes, no and nothing."""
    if value is True or value is False:
        return "yes" if value else "no"
    return "nothing" if value is None or value == "" else value


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    """A time in UTC, to the second."""
    if value is None:
        return "–"
    text = value.astimezone(timezone.get_default_timezone()).strftime("%Y-%m-%d %H:%M:%S")
    return format_html('<time class="nowrap" datetime="{}">{}</time>', value.isoformat(), text)


@register.filter
def state(value: Any) -> SafeString:
    """A state as a badge, with the same colour on every page."""
    word = str(value)
    tone = _TONE_OF.get(word)
    return format_html('<span class="badge{}">{}</span>', f" badge-{tone}" if tone else "", words(word))


@register.inclusion_tag("dashboard/_gauge.html")
def gauge(system: int, summaries: int, raw: int, budget: int, threshold: int) -> dict[str, Any]:
    """The gauge of a context's tokens against its budget and compaction threshold."""
    whole = max(budget, system + summaries + raw, 1)
    places, x = [], 0.0
    for name, tokens in (("system", system), ("summary", summaries), ("tail", raw)):
        width = 100 * tokens / whole
        places.append({"name": name, "x": round(x, 3), "width": round(width, 3)})
        x += width
    label = f"{system:,} system, {summaries:,} summaries, {raw:,} raw, of {budget:,} tokens"
    # A threshold at the end of the gauge is not drawn.
    limit = round(100 * threshold / whole, 3) if threshold < whole else None
    return {"places": places, "limit": limit, "label": label}


# The number of messages on each side of a match that is shown in the lineage.
AROUND = 40
_NAMED = re.compile(r"`([^`]*)`")
_RISKS = {
    Risk.LOW: ("good", "low risk", "Nothing can be lost: the new values are derived from other data."),
    Risk.MEDIUM: ("warn", "medium risk", "What a model sees may change."),
    Risk.HIGH: ("bad", "high risk", "Check carefully: content comes from outside, or a last copy is removed."),
}
_PAUSES = {
    PauseReason.PERSON: "by a person",
    PauseReason.BREAKER: "the model fails too often or is not configured; resumes automatically",
    PauseReason.SPEND: "the site's limit for the model is reached; resumes automatically",
    PauseReason.BUDGET: "the token budget of the run is spent",
    PauseReason.QUARANTINE: "the input file is quarantined; release the file, then resume the run",
}
_REASONS = {
    AssemblyReason.SYSTEM: "system message: always included",
    AssemblyReason.FRESH_TAIL: "fresh tail: always included",
    AssemblyReason.PINNED: "current question: always included",
    AssemblyReason.RELEVANT: "matches the query",
    AssemblyReason.FITS: "fits into the budget",
    AssemblyReason.BUDGET: "does not fit into the budget",
    AssemblyReason.QUARANTINED: "quarantined: no model sees it until it is repaired",
}


@register.filter
def reason(value: AssemblyReason) -> str:
    """A sentence: why an item is in a context, or why it is not."""
    return _REASONS[value]


@register.filter
def why_paused(value: PauseReason) -> str:
    """Why a map run is paused, and whether it resumes automatically."""
    return _PAUSES.get(value, "")


@register.filter
def risk(value: Risk) -> SafeString:
    """A risk as a badge, explained by its tooltip."""
    tone, words, meaning = _RISKS[value]
    return format_html('<span class="badge badge-{}" title="{}">{}</span>', tone, meaning, words)


@register.simple_tag
def thing(visit: Visit, conversation_id: int | None, id: str) -> SafeString:
    """An id with a link to the page that shows it."""
    url = url_of(visit.workspace.name, conversation_id, id)
    if url is None:
        return format_html("<code>{}</code>", id)
    return format_html('<a class="mono" href="{}">{}</a>', url, id)


@register.filter
def code_spans(text: str) -> SafeString:
    """A sentence as HTML, with names in backticks as code."""
    return mark_safe(_NAMED.sub(r"<code>\1</code>", str(escape(text))))


@register.filter
def highlighted(snippet: Snippet) -> SafeString:
    """The text of a snippet with its matches highlighted."""
    return marked_spans(snippet.text, snippet.highlights)


@register.filter
def around(match: Match) -> str:
    """The query string of the lineage window around a match."""
    return urlencode({"from": max(1, match.first_seq - AROUND), "to": match.last_seq + AROUND})


@register.filter
def pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def detail(value: Any) -> str:
    """A detail of an audit log entry as text."""
    if isinstance(value, list):
        return ", ".join(map(detail, value)) or "none"
    return "none" if value is None else json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
