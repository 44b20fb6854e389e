"""What a model would be given of a conversation, and why just that: any budget, question, format and moment."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from conversations.errors import LcmError
from conversations.types import ContextItemType
from lcmsite.catalogue.problems import problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import text_in
from lcmsite.dashboard.parts.pager import paged
from lcmsite.dashboard.service import ask, ask_in_text
from retrieval.assembly.types import AssembledContext, AssemblyReason, MessageFormat, ReceiptLine

FIELDS = ("budget", "reserve", "query", "as_of", "format")
# So many of the receipts that are kept can be chosen from at a time.
KEPT = 20
# What a reason means, in the words of whoever wonders.
MEANINGS = {
    AssemblyReason.SYSTEM: "a system message: always in it",
    AssemblyReason.FRESH_TAIL: "of the fresh tail: always in it",
    AssemblyReason.PINNED: "the question that is being worked on: always in it",
    AssemblyReason.RELEVANT: "answers the query",
    AssemblyReason.FITS: "there was room for it",
    AssemblyReason.BUDGET: "there was no room for it",
    AssemblyReason.QUARANTINED: "quarantined: no model sees it until it is put right",
}


@page()
def inspector(visit: Visit, conversation_id: int) -> HttpResponse:
    """The form and the receipts that were kept; what is in the context, and what is not, comes into it afterwards."""
    asked = _asked(visit.request.GET)
    if visit.is_part:
        return visit.show(
            "dashboard/_assembled.html",
            conversation_id=conversation_id,
            asked=asked,
            address=urlencode(asked),
            **_explained(visit, conversation_id, asked),
        )
    before = visit.request.GET.get("before") or None
    receipts = ask(visit.caller, "lcm_receipts", conversation_id=conversation_id, before_receipt=before, limit=KEPT + 1)
    return visit.show(
        "dashboard/inspector.html",
        conversation=ask(visit.caller, "lcm_show", conversation_id=conversation_id),
        asked=asked,
        address=urlencode(asked),
        formats=list(MessageFormat),
        paged=paged(receipts, most=KEPT, key="receipt_id", before=before, asked=asked),
        kept=visit.request.GET.get("kept", ""),
    )


@page()
def text(visit: Visit, conversation_id: int) -> HttpResponse:
    """The context as the model gets it, to the letter."""
    context = _assembled(visit, conversation_id, _asked(visit.request.GET))
    said = None
    if context.format is not None:
        body = {"system": context.system, "messages": context.messages} if context.system else context.messages
        said = json.dumps(body, ensure_ascii=False, indent=2)
    return visit.show("dashboard/_context_text.html", context=context, said=said, conversation_id=conversation_id)


@page(methods=("POST",))
def keep(visit: Visit, conversation_id: int) -> HttpResponse:
    """Keep the receipt of what was asked for, to be compared later."""
    asked = _asked(visit.request.POST)
    context = _assembled(visit, conversation_id, asked, keep_receipt=True)
    gone = f" {len(context.receipts_gone)} older made way for it." if context.receipts_gone else ""
    messages.success(visit.request, f"The receipt is kept as {context.receipt_id}.{gone}")
    page = reverse("inspector", kwargs={"workspace": visit.workspace.name, "conversation_id": conversation_id})
    return redirect(f"{page}?{urlencode({**asked, 'kept': context.receipt_id})}")


@page()
def compare(visit: Visit, conversation_id: int) -> HttpResponse:
    """What came into the context and what went out of it, from one kept receipt to another."""
    given = visit.request.GET
    found = ask(visit.caller, "lcm_compare_receipts", receipt_id=given.get("receipt", ""), other=given.get("other", ""))
    return visit.show("dashboard/_receipt_difference.html", difference=found, conversation_id=conversation_id)


def _asked(given: QueryDict) -> dict[str, str]:
    return {name: text_in(given, name) for name in FIELDS if text_in(given, name)}


def _assembled(visit: Visit, conversation_id: int, asked: dict[str, str], **options: Any) -> AssembledContext:
    context: AssembledContext = ask_in_text(
        visit.caller, "lcm_assemble", asked, conversation_id=conversation_id, **options
    )
    return context


def _explained(visit: Visit, conversation_id: int, asked: dict[str, str]) -> dict[str, Any]:
    """What the receipt says, to be shown; a form that cannot be meant keeps what stands in it and says why."""
    try:
        # The decisions are the same in every format; the texts are fetched by whoever opens them.
        context = _assembled(visit, conversation_id, asked)
    except LcmError as refusal:
        return {"context": None, "problem": problem_of(refusal)}
    included = [line for line in context.receipt if line.included]
    return {
        "context": context,
        "included": [_told(line) for line in included],
        "refused": [_told(line) for line in context.receipt if not line.included],
        "system_tokens": _sum(line for line in included if line.reason is AssemblyReason.SYSTEM),
        "summary_tokens": _sum(line for line in included if line.kind is ContextItemType.SUMMARY),
        "raw_tokens": _sum(
            line
            for line in included
            if line.kind is not ContextItemType.SUMMARY and line.reason is not AssemblyReason.SYSTEM
        ),
        "room": context.budget - context.reserve,
    }


def _told(line: ReceiptLine) -> dict[str, Any]:
    return {"line": line, "meaning": MEANINGS[line.reason]}


def _sum(lines: Any) -> int:
    return sum(line.tokens for line in lines)
