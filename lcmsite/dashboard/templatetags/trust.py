"""Template tags of the trust pages: links by id, code in sentences, and risks."""

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
    Risk.LOW: ("good", "low risk", "Nothing can be lost: the new values are derived from other data."),
    Risk.MEDIUM: ("warn", "medium risk", "What a model sees may change."),
    Risk.HIGH: ("bad", "high risk", "Check carefully: content comes from outside, or a last copy is removed."),
}


@register.simple_tag
def thing(visit: Visit, conversation_id: int | None, id: str) -> SafeString:
    """An id with a link to the page that shows it."""
    place = place_of(visit.workspace.name, conversation_id, id)
    if place.url is None:
        return format_html("<code>{}</code>", place.id)
    return format_html('<a class="mono" href="{}">{}</a>', place.url, place.id)


@register.filter
def code_spans(text: str) -> SafeString:
    """A sentence of a README as HTML, with names in backticks as code."""
    return mark_safe(_NAMED.sub(r"<code>\1</code>", str(escape(text))))


@register.filter
def risk(value: Risk) -> SafeString:
    """A risk as a badge, explained by its tooltip."""
    tone, words, meaning = _RISKS[value]
    return format_html('<span class="badge badge-{}" title="{}">{}</span>', tone, meaning, words)
