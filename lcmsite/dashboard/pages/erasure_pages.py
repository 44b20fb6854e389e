"""Erasure in two steps, for admins: choose and preview, then confirm."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse, QueryDict

from conversations.audit import Act
from conversations.errors import Invalid, LcmError
from integrity.retention.types import ErasurePreview
from lcmsite.catalogue.problems import Problem, problem_of
from lcmsite.dashboard.visit import POST, Visit, page, text_in
from lcmsite.types import KeyScope

# If an erasure fails with one of these codes, nothing was erased, and the preview is shown again.
_SHOWN_AGAIN_AFTER = frozenset({"not_confirmed", "invalid_params", "erasure_outdated", "erasure_expired"})

_IDS = re.compile(r"[^\s,;]+")


@page(KeyScope.ADMIN)
def erasures(visit: Visit) -> HttpResponse:
    """The erasures of this workspace, from the audit log."""
    return visit.show("trust/erasures.html", paged=visit.list_page("lcm_audit", act=Act.ERASE))


def _show_form(visit: Visit, problem: Problem | None = None, *, conversation_id: int) -> HttpResponse:
    return visit.show(
        "trust/choose_erasure.html",
        conversation=visit.call("lcm_show", conversation_id=conversation_id),
        given=visit.request.GET if problem is None else visit.request.POST,
        refusal=problem,
    )


@page(KeyScope.ADMIN)
def choose(visit: Visit, conversation_id: int) -> HttpResponse:
    return _show_form(visit, conversation_id=conversation_id)


@page(KeyScope.ADMIN, POST, on_refusal=_show_form)
def preview(visit: Visit, conversation_id: int) -> HttpResponse:
    """Preview everything that would be erased; nothing is changed."""
    return _show_preview(visit, conversation_id)


@page(KeyScope.ADMIN, POST)
def erase(visit: Visit, conversation_id: int) -> HttpResponse:
    """Erase what was previewed if the confirmation matches; else preview it again."""
    given = visit.request.POST
    try:
        confirmation = given.get("confirmation", "")
        done = visit.call("lcm_erase", erasure_id=given.get("erasure_id", ""), confirmation=confirmation)
    except LcmError as refusal:
        if refusal.code not in _SHOWN_AGAIN_AFTER:
            raise
        return _show_preview(visit, conversation_id, problem_of(refusal))
    conversation = visit.call("lcm_show", conversation_id=conversation_id)
    return visit.show("trust/erased.html", done=done, conversation=conversation)


def _chosen(given: QueryDict) -> dict[str, Any]:
    """The params in the form. Raises Invalid unless it selects everything or a part.

    For the service, no params mean the whole conversation; an empty form must not mean that.
    """
    ends = {name: text_in(given, name) for name in ("from_seq", "to_seq")}
    ids = {name: _IDS.findall(given.get(name, "")) for name in ("message_ids", "file_ids")}
    named = {name: value for name, value in {**ends, **ids}.items() if value}
    is_whole = bool(given.get("is_whole"))
    if is_whole and named:
        raise Invalid("Choose either everything or some messages and files, not both.", code="nothing_chosen")
    if not is_whole and not named:
        raise Invalid("Choose messages, files or everything to erase.", code="nothing_chosen")
    return named


def _show_preview(visit: Visit, conversation_id: int, problem: Problem | None = None) -> HttpResponse:
    """The preview page; if an erasure was refused, with the problem."""
    chosen = _chosen(visit.request.POST)
    found: ErasurePreview = visit.call("lcm_preview_erasure", in_text=chosen, conversation_id=conversation_id)
    return visit.show(
        "trust/preview_erasure.html",
        conversation=visit.call("lcm_show", conversation_id=conversation_id),
        preview=found,
        given=visit.request.POST,
        unlisted=found.summary_count - len(found.summaries),
        refusal=problem,
    )
