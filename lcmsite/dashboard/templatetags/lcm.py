"""What templates say in the same words everywhere: numbers, times, states, and where one is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from lcmsite.dashboard.navigation import GROUPS, OF_THE_SITE, TABS, UNDER
from lcmsite.dashboard.page import Visit

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
    """The pages of the workspace that this person may open; the one they are on, or under, is marked."""
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
    """What there is to see of a conversation; the one that is shown is marked."""
    entries = []
    for name, label, scope in TABS:
        if visit.caller.may(scope):
            url = reverse(name, kwargs={"workspace": visit.workspace.name, "conversation_id": conversation_id})
            here = visit.request.path
            is_here = here == url or (name != "transcript" and here.startswith(url))
            entries.append(Entry(title=label, url=url, is_here=is_here))
    return entries


@register.filter
def number(value: Any) -> str:
    """1234567 as 1,234,567; nothing as a dash."""
    return "–" if value is None else f"{value:,}"


@register.filter
def short(value: int | float | None) -> str:
    """A large number in three digits: 93.6k, 1.2M."""
    if value is None:
        return "–"
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f}".rstrip("0").rstrip(".") + letter
    return f"{value:,}"


@register.filter
def size(value: int | None) -> str:
    """Bytes for people: 3.4 MiB."""
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
    """How long ago, with the moment itself for those who ask."""
    if moment is None:
        return "–"
    seconds = int((timezone.now() - moment).total_seconds())
    ahead, seconds = seconds < 0, abs(seconds)
    said = next((f"{seconds // size} {unit}" for size, unit in _UNITS if seconds >= size), "now")
    words = said if said == "now" else f"in {said}" if ahead else f"{said} ago"
    exact = moment.astimezone(timezone.get_default_timezone()).strftime("%Y-%m-%d %H:%M:%S UTC")
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, words)


@register.filter
def until(start: datetime, end: datetime) -> str:
    """How long it took: 340 ms, 2.4 s, 3 min 20 s."""
    seconds = max(0.0, (end - start).total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(int(seconds), 60)
    return f"{minutes:,} min {left} s"


@register.filter
def words(value: Any) -> str:
    """A name out of code, as people write it: not_needed as not needed."""
    return str(value).replace("_", " ")


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    """The moment itself, to the second, in UTC."""
    if value is None:
        return "–"
    said = value.astimezone(timezone.get_default_timezone()).strftime("%Y-%m-%d %H:%M:%S")
    return format_html('<time class="nowrap" datetime="{}">{}</time>', value.isoformat(), said)


@register.filter
def state(value: Any) -> SafeString:
    """A state as a badge, in the colour that it has everywhere; never told by colour alone."""
    word = str(value)
    tone = _TONE_OF.get(word)
    return format_html('<span class="badge{}">{}</span>', f" badge-{tone}" if tone else "", word.replace("_", " "))


@register.inclusion_tag("dashboard/_gauge.html")
def gauge(system: int, summaries: int, raw: int, budget: int, threshold: int) -> dict[str, Any]:
    """What fills a context, beside what it may hold, and where compaction begins."""
    whole = max(budget, system + summaries + raw, 1)
    places, x = [], 0.0
    for name, tokens in (("system", system), ("summary", summaries), ("tail", raw)):
        width = 100 * tokens / whole
        places.append({"name": name, "x": round(x, 3), "width": round(width, 3)})
        x += width
    said = f"{system:,} system, {summaries:,} summaries, {raw:,} raw, of {budget:,} tokens"
    # At the very end there is nothing to tell apart.
    limit = round(100 * threshold / whole, 3) if threshold < whole else None
    return {"places": places, "limit": limit, "said": said}
