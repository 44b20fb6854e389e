"""Template tags and filters: numbers, times, states, links and navigation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from integrity.types import Risk
from lcmsite.dashboard.navigation import GROUPS, OF_THE_SITE, TABS, UNDER
from lcmsite.dashboard.parts.findings import url_of
from lcmsite.dashboard.visit import Visit

register = template.Library()

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_STATES = {
    "good": "compacted succeeded done clean closed ready applied active approved ok warm",
    "warn": "waiting queued running half_open exhausted degraded proposed stale soft warning deterministic aggressive"
    " cold expired leased undone stopped unavailable probing",
    "bad": "failed error critical open hard refused revoked over_budget quarantined erased abandoned",
}
_TONE_OF = {state: tone for tone, states in _STATES.items() for state in states.split()}


@dataclass(frozen=True)
class Entry:
    title: str
    url: str
    is_here: bool


@dataclass(frozen=True)
class Group:
    title: str
    entries: tuple[Entry, ...]


@register.simple_tag
def navigation(visit: Visit) -> list[Group]:
    """The menu of this person, with the current page marked."""
    here, match = visit.request.path, visit.request.resolver_match
    belongs_to = UNDER.get(match.url_name or "") if match else None
    groups = []
    for title, entries in GROUPS:
        shown = []
        for name, label, scope in entries:
            if visit.caller.may(scope) and (visit.caller.is_operator or name not in OF_THE_SITE):
                url = reverse(name, kwargs={"workspace": visit.workspace.name})
                is_here = here == url or (name != "overview" and here.startswith(url)) or name == belongs_to
                shown.append(Entry(title=label, url=url, is_here=is_here))
        if shown:
            groups.append(Group(title=title, entries=tuple(shown)))
    return groups


@register.simple_tag
def conversation_tabs(visit: Visit, conversation_id: int) -> list[Entry]:
    """The tabs of a conversation, with the current one marked."""
    entries = []
    for name, label, scope in TABS:
        if visit.caller.may(scope):
            url = reverse(name, kwargs={"workspace": visit.workspace.name, "conversation_id": conversation_id})
            here = visit.request.path
            is_here = here == url or (name != "transcript" and here.startswith(url))
            entries.append(Entry(title=label, url=url, is_here=is_here))
    return entries


@register.simple_tag(takes_context=True)
def page_url(context: Context, page_name: str, **path: Any) -> str:
    """The address of a page of this workspace."""
    return reverse(page_name, kwargs={"workspace": context["visit"].workspace.name, **path})


@register.simple_tag(takes_context=True)
def message_url(context: Context, conversation_id: int, seq: int) -> str:
    """The address of a message in its transcript."""
    return f"{page_url(context, 'transcript', conversation_id=conversation_id)}?seq={seq}#m{seq}"


@register.filter
def number(value: Any) -> str:
    """1234567 as 1,234,567; None as a dash."""
    return "–" if value is None else f"{value:,}"


@register.filter
def short(value: int | float | None) -> str:
    """A large number with few digits: 93.6k, 1.2M."""
    if value is None:
        return "–"
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f}".rstrip("0").rstrip(".") + letter
    return f"{value:,}"


@register.filter
def size(value: int | None) -> str:
    """A number of bytes as 3.4 MiB."""
    if value is None:
        return "–"
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError


@register.filter
def percent(share: float | None) -> str:
    """0.734 as 73 %."""
    return "–" if share is None else f"{share:.0%}".replace("%", " %")


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """How long ago, with the exact time as a tooltip."""
    if moment is None:
        return "–"
    seconds = int((timezone.now() - moment).total_seconds())
    ahead, seconds = seconds < 0, abs(seconds)
    span = next((f"{seconds // size} {unit}" for size, unit in _UNITS if seconds >= size), "now")
    words = span if span == "now" else f"in {span}" if ahead else f"{span} ago"
    exact = moment.astimezone(timezone.get_default_timezone()).strftime("%Y-%m-%d %H:%M:%S UTC")
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
def words(value: Any) -> str:
    """A name from the code as words: not_needed as not needed."""
    return str(value).replace("_", " ")


@register.filter
def plain(value: Any) -> Any:
    """The value of a setting as words: yes, no, nothing, or as it is."""
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
    """A state as a badge, with the same word and colour on every page."""
    word = str(value)
    tone = _TONE_OF.get(word)
    return format_html('<span class="badge{}">{}</span>', f" badge-{tone}" if tone else "", word.replace("_", " "))


@register.inclusion_tag("dashboard/_gauge.html")
def gauge(system: int, summaries: int, raw: int, budget: int, threshold: int) -> dict[str, Any]:
    """What fills a context, compared with its budget and the compaction threshold."""
    whole = max(budget, system + summaries + raw, 1)
    places, x = [], 0.0
    for name, tokens in (("system", system), ("summary", summaries), ("tail", raw)):
        width = 100 * tokens / whole
        places.append({"name": name, "x": round(x, 3), "width": round(width, 3)})
        x += width
    label = f"{system:,} system, {summaries:,} summaries, {raw:,} raw, of {budget:,} tokens"
    # A threshold at the very end is not drawn.
    limit = round(100 * threshold / whole, 3) if threshold < whole else None
    return {"places": places, "limit": limit, "label": label}


_NAMED = re.compile(r"`([^`]*)`")
_RISKS = {
    Risk.LOW: ("good", "low risk", "Nothing can be lost: the new values are derived from other data."),
    Risk.MEDIUM: ("warn", "medium risk", "What a model sees may change."),
    Risk.HIGH: ("bad", "high risk", "Check carefully: content comes from outside, or a last copy is removed."),
}


@register.simple_tag
def thing(visit: Visit, conversation_id: int | None, id: str) -> SafeString:
    """An id with a link to the page that shows it."""
    url = url_of(visit.workspace.name, conversation_id, id)
    if url is None:
        return format_html("<code>{}</code>", id)
    return format_html('<a class="mono" href="{}">{}</a>', url, id)


@register.filter
def code_spans(text: str) -> SafeString:
    """A sentence of a README as HTML, with names in backticks as code."""
    return mark_safe(_NAMED.sub(r"<code>\1</code>", str(escape(text))))


@register.filter
def risk(value: Risk) -> SafeString:
    """A risk as a badge, explained by its tooltip."""
    tone, words, meaning = _RISKS[value]
    return format_html('<span class="badge badge-{}" title="{}">{}</span>', tone, meaning, words)
