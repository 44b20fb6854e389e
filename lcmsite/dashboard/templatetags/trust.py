"""What the pages of trust say in the same words: a place by its id, and a README's words as HTML."""

from __future__ import annotations

import re

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from integrity.types import Risk
from lcmsite.dashboard.page import Visit
from lcmsite.dashboard.trust.place_links import place_of

register = template.Library()

_NAMED = re.compile(r"`([^`]*)`")
_RISKS = {
    Risk.LOW: ("good", "low risk", "Nothing can be lost: what is written follows from what stays."),
    Risk.MEDIUM: ("warn", "medium risk", "What a model sees changes."),
    Risk.HIGH: ("bad", "high risk", "Look twice: a text comes in from outside, or a last trace goes."),
}


@register.simple_tag
def thing(visit: Visit, conversation_id: int | None, id: str) -> SafeString:
    """An id, leading to the page that shows what it names."""
    place = place_of(visit.workspace.name, conversation_id, id)
    if place.url is None:
        return format_html("<code>{}</code>", place.id)
    return format_html('<a class="mono" href="{}">{}</a>', place.url, place.id)


@register.filter
def told(text: str) -> SafeString:
    """A sentence of a README: what stands in backticks is a name."""
    return mark_safe(_NAMED.sub(r"<code>\1</code>", str(escape(text))))


@register.filter
def risk(value: Risk) -> SafeString:
    """A risk as a badge, with what is at risk for those who ask."""
    tone, words, meaning = _RISKS[value]
    return format_html('<span class="badge badge-{}" title="{}">{}</span>', tone, meaning, words)
