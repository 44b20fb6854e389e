"""What has to go for good: previewed with all that it takes along, typed out, and then on record. For admins alone."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse, QueryDict

from conversations.audit import Act
from conversations.errors import Invalid, LcmError
from conversations.types import AuditRecord
from integrity.retention.types import ErasurePreview
from lcmsite.catalogue.problems import Problem, problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import number_in
from lcmsite.dashboard.parts.pager import paged
from lcmsite.dashboard.service import ask, ask_in_text
from lcmsite.types import KeyScope

ON_A_PAGE = 50
# Nothing was erased, and what could be is to be seen once more, as it is now.
_PREVIEWED_ANEW = frozenset({"not_confirmed", "invalid_params", "erasure_outdated", "erasure_expired"})

_SEPARATORS = re.compile(r"[\s,;]+")


@page(KeyScope.ADMIN)
def erasures(visit: Visit) -> HttpResponse:
    """The tombstones: what was erased in this workspace, when, and by whom."""
    before = number_in(visit.request.GET, "before")
    found: list[AuditRecord] = ask(visit.caller, "lcm_audit", act=Act.ERASE, before_id=before, limit=ON_A_PAGE + 1)
    return visit.show(
        "dashboard/trust/erasures.html",
        paged=paged(found, most=ON_A_PAGE, key="audit_id", before=before),
    )


@page(KeyScope.ADMIN)
def choose(visit: Visit, conversation_id: int) -> HttpResponse:
    """What of a conversation is to go."""
    return _form(visit, conversation_id, visit.request.GET)


@page(KeyScope.ADMIN, methods=("POST",))
def preview(visit: Visit, conversation_id: int) -> HttpResponse:
    """Everything that would go along; nothing is touched."""
    given = visit.request.POST
    try:
        found = _previewed(visit, conversation_id, given)
    except LcmError as refusal:
        return _form(visit, conversation_id, given, problem_of(refusal))
    return _shown(visit, conversation_id, found)


@page(KeyScope.ADMIN, methods=("POST",))
def erase(visit: Visit, conversation_id: int) -> HttpResponse:
    """Erase what was previewed, if what was typed is what the preview asks for; else show it anew, as it is now."""
    given = visit.request.POST
    try:
        done = ask(
            visit.caller,
            "lcm_erase",
            erasure_id=given.get("erasure_id", ""),
            confirmation=given.get("confirmation", ""),
        )
    except LcmError as refusal:
        if refusal.code not in _PREVIEWED_ANEW:
            raise
        found = _previewed(visit, conversation_id, given)
        return _shown(visit, conversation_id, found, problem_of(refusal))
    conversation = ask(visit.caller, "lcm_show", conversation_id=conversation_id)
    return visit.show("dashboard/trust/erased.html", done=done, conversation=conversation)


def _previewed(visit: Visit, conversation_id: int, given: QueryDict) -> ErasurePreview:
    found: ErasurePreview = ask_in_text(
        visit.caller, "lcm_preview_erasure", _chosen(given), conversation_id=conversation_id
    )
    return found


def _chosen(given: QueryDict) -> dict[str, Any]:
    """What somebody named; Invalid unless it is one of the two: all of it, said expressly, or some of it.

    To the service a request that names nothing means all of the conversation. A form that was left empty does not.
    """
    ends = {name: given.get(name, "").strip() for name in ("from_seq", "to_seq")}
    ids = {name: _ids(given.get(name, "")) for name in ("message_ids", "file_ids")}
    named = {name: value for name, value in {**ends, **ids}.items() if value}
    is_whole = bool(given.get("is_whole"))
    if is_whole and named:
        raise Invalid("It is all of the conversation, or some of it: not both.", code="nothing_chosen")
    if not is_whole and not named:
        raise Invalid("Say what is to be erased: messages, files, or all of it.", code="nothing_chosen")
    return named


def _ids(text: str) -> list[str]:
    return [each for each in _SEPARATORS.split(text) if each]


def _form(visit: Visit, conversation_id: int, given: QueryDict, problem: Problem | None = None) -> HttpResponse:
    return visit.show(
        "dashboard/trust/choose_erasure.html",
        status=problem.status if problem else 200,
        conversation=ask(visit.caller, "lcm_show", conversation_id=conversation_id),
        given=given,
        problem=problem,
    )


def _shown(visit: Visit, conversation_id: int, found: ErasurePreview, problem: Problem | None = None) -> HttpResponse:
    return visit.show(
        "dashboard/trust/preview_erasure.html",
        status=problem.status if problem else 200,
        conversation=ask(visit.caller, "lcm_show", conversation_id=conversation_id),
        preview=found,
        given=visit.request.POST,
        unlisted=found.summary_count - len(found.summaries),
        problem=problem,
    )
