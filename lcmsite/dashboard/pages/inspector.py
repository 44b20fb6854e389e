"""The context inspector: assemble with any options, and show each decision."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from conversations.errors import LcmError
from conversations.formats.rendered import MessageFormat
from conversations.humanize import counted
from conversations.types import ContextItemType
from lcmsite.catalogue.problems import problem_of
from lcmsite.dashboard.visit import POST, Visit, page, texts_in
from retrieval.assembly.types import AssembledContext, AssemblyReason

FIELDS = ("budget", "reserve", "query", "as_of", "format")
# The number of stored receipts on a page.
KEPT = 20


@page()
def inspector(visit: Visit, conversation_id: int) -> HttpResponse:
    """The form and the stored receipts; the assembled context is loaded afterwards."""
    fields = texts_in(visit.request.GET, FIELDS)
    if visit.is_part:
        return visit.show(
            "_assembled.html",
            conversation_id=conversation_id,
            fields=fields,
            address=urlencode(fields),
            **_assemble_explained(visit, conversation_id, fields),
        )
    return visit.show(
        "inspector.html",
        conversation=visit.call("lcm_show", conversation_id=conversation_id),
        fields=fields,
        address=urlencode(fields),
        formats=list(MessageFormat),
        paged=visit.list_page("lcm_receipts", limit=KEPT, filters=fields, conversation_id=conversation_id),
        kept=visit.request.GET.get("kept", ""),
    )


@page()
def text(visit: Visit, conversation_id: int) -> HttpResponse:
    """The exact context that the model receives."""
    context = _assemble(visit, conversation_id, texts_in(visit.request.GET, FIELDS))
    body = {"system": context.system, "messages": context.messages} if context.system else context.messages
    return visit.show("_context_text.html", context=context, body=body, conversation_id=conversation_id)


@page(methods=POST)
def keep_receipt(visit: Visit, conversation_id: int) -> HttpResponse:
    fields = texts_in(visit.request.POST, FIELDS)
    context = _assemble(visit, conversation_id, fields, keep_receipt=True)
    gone = f" {counted(len(context.receipts_gone), 'older receipt')} removed." if context.receipts_gone else ""
    messages.success(visit.request, f"The receipt is kept as {context.receipt_id}.{gone}")
    page = reverse("inspector", kwargs={"workspace": visit.workspace.name, "conversation_id": conversation_id})
    return redirect(f"{page}?{urlencode({**fields, 'kept': context.receipt_id})}")


@page()
def compare(visit: Visit, conversation_id: int) -> HttpResponse:
    given = visit.request.GET
    found = visit.call("lcm_compare_receipts", receipt_id=given.get("receipt", ""), other=given.get("other", ""))
    return visit.show("_receipt_difference.html", difference=found, conversation_id=conversation_id)


def _assemble(visit: Visit, conversation_id: int, fields: dict[str, str], **options: Any) -> AssembledContext:
    context: AssembledContext = visit.call("lcm_assemble", in_text=fields, conversation_id=conversation_id, **options)
    return context


def _assemble_explained(visit: Visit, conversation_id: int, fields: dict[str, str]) -> dict[str, Any]:
    """The context with the decisions of its receipt, or the problem with the form."""
    try:
        # The decisions are the same in every format; the exact text is loaded on request.
        context = _assemble(visit, conversation_id, fields)
    except LcmError as refusal:
        return {"context": None, "problem": problem_of(refusal)}
    included = [line for line in context.receipt if line.included]
    system = sum(line.tokens for line in included if line.reason is AssemblyReason.SYSTEM)
    summaries = sum(line.tokens for line in included if line.kind is ContextItemType.SUMMARY)
    return {
        "context": context,
        "included": included,
        "refused": [line for line in context.receipt if not line.included],
        "system_tokens": system,
        "summary_tokens": summaries,
        "raw_tokens": sum(line.tokens for line in included) - system - summaries,
        "room": context.budget - context.reserve,
    }
