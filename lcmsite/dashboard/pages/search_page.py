"""Pages to search, to ask a question, and to read everything about a name."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict

from conversations.errors import LcmError
from conversations.types import PartType, Role
from lcmsite.catalogue.problems import Problem, problem_of
from lcmsite.dashboard.visit import Visit, page, text_in, texts_in
from retrieval.delegation.types import QueryAnswer
from retrieval.types import GrepMode, GrepResult, GrepScope, GrepSort

MATCHES = 20
MODES = {GrepMode.FULL_TEXT: "words", GrepMode.REGEX: "a regular expression"}
SCOPES = {
    GrepScope.BOTH: "messages and summaries",
    GrepScope.MESSAGES: "messages",
    GrepScope.SUMMARIES: "summaries",
    GrepScope.FILES: "files",
    GrepScope.ALL: "everything",
}
ORDERS = {
    GrepSort.RELEVANCE: "best first",
    GrepSort.RECENCY: "newest first",
    GrepSort.HYBRID: "best and newest first",
}
SEVERAL = ("roles", "part_types")
SINGLE = ("query", "mode", "scope", "conversation_id", "since", "until", "from_seq", "to_seq", "depth", "under", "sort")
ABOUT = ("entity", "aspect", "question", "conversation_id", "max_tokens")
# These filters are always visible. The others are collapsed until one of them is set.
VISIBLE = {"query", "mode", "scope", "conversation_id", "sort"}


@page()
def search(visit: Visit) -> HttpResponse:
    """The form; matches are loaded afterwards, page by page."""
    given = visit.request.GET
    filters = _filters_in(given)
    if visit.is_part:
        return visit.show("_matches.html", filters=filters, **_find_matches(visit, filters, given.get("cursor")))
    return visit.show(
        "search.html",
        **_conversation_choices(visit, text_in(given, "conversation_id")),
        is_open=bool(filters.keys() - VISIBLE),
        modes=MODES.items(),
        scopes=SCOPES.items(),
        sorts=ORDERS.items(),
        roles=list(Role),
        part_types=list(PartType),
        filters=filters,
        address=_address(filters) if "query" in filters else None,
    )


def _show_form(visit: Visit, problem: Problem | None = None, *, answer: QueryAnswer | None = None) -> HttpResponse:
    """The form of a question, with the answer or the problem if there is one."""
    excerpts = answer.excerpts if answer else ()
    conversation_of = {each.id: each.conversation_id for each in excerpts}
    return visit.show(
        "ask.html",
        given=visit.request.POST,
        **_conversation_choices(visit, text_in(visit.request.POST, "conversation_id")),
        answer=answer,
        cited=[(conversation_of.get(id), id) for id in answer.cited_ids] if answer else [],
        refusal=problem,
    )


@page(methods=("GET", "HEAD", "POST"), on_refusal=_show_form)
def ask(visit: Visit) -> HttpResponse:
    """The form of a question; after a POST, with the answer and the ids it cites."""
    given = visit.request.POST
    if visit.request.method != "POST":
        return _show_form(visit)
    chosen = {"conversation_id": given["conversation_id"]} if given.get("conversation_id") else {}
    return _show_form(visit, answer=visit.call("lcm_expand_query", in_text=chosen, question=text_in(given, "question")))


@page()
def about(visit: Visit) -> HttpResponse:
    """The form for a name; as a part, everything found about the name."""
    filters = texts_in(visit.request.GET, ABOUT)
    if visit.is_part and "entity" in filters:
        return visit.show("_about.html", found=visit.call("lcm_about", in_text=filters))
    chosen = _conversation_choices(visit, filters.get("conversation_id", ""))
    return visit.show("about.html", filters=filters, address=urlencode(filters), **chosen)


def _conversation_choices(visit: Visit, chosen: str) -> dict[str, Any]:
    """The most recently used conversations, for the form's list, and the chosen one."""
    conversations = visit.recent_conversations()
    is_listed = chosen in {"", *(str(each.conversation_id) for each in conversations)}
    return {"conversations": conversations, "chosen": chosen, "unlisted": "" if is_listed else chosen}


def _filters_in(given: QueryDict) -> dict[str, Any]:
    """The fields of the form as params of grep, without empty ones."""
    filters: dict[str, Any] = texts_in(given, SINGLE)
    # Not stripped: whitespace around a regular expression matters.
    if "query" in filters:
        filters["query"] = str(given["query"])
    filters |= {name: given.getlist(name) for name in SEVERAL if any(given.getlist(name))}
    if tools := [name.strip() for name in text_in(given, "tool_names").split(",") if name.strip()]:
        filters["tool_names"] = tools
    if given.get("cold") == "true":
        filters["cold"] = "true"
    if given.get("branch") == "all":
        filters["branch"] = "all"
    return filters


def _find_matches(visit: Visit, filters: dict[str, Any], cursor: str | None) -> dict[str, Any]:
    """A page of matches; or, if a filter is invalid, the problem to show."""
    if "query" not in filters:
        return {}
    try:
        result: GrepResult = visit.call("lcm_grep", in_text=filters, limit=MATCHES, cursor=cursor or None)
    except LcmError as refusal:
        return {"problem": problem_of(refusal)}
    return {
        "found": result,
        "is_first": not cursor,
        "order": ORDERS[result.sort],
        "more": _address(filters, cursor=result.cursor) if result.more else None,
        "cold_address": _address(filters, cold="true") if result.cold_messages and not result.cold else None,
    }


def _address(filters: dict[str, Any], **besides: str | None) -> str:
    """The filters and further values as a query string."""
    tools = {"tool_names": ",".join(filters["tool_names"])} if "tool_names" in filters else {}
    return urlencode({**filters, **tools, **besides}, doseq=True)
