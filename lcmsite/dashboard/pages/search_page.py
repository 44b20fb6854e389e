"""Search: everything that was said, summarized or stored in a workspace, narrowed as far as one likes."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict
from django.utils.safestring import SafeString

from conversations.errors import LcmError
from conversations.types import PartType, Role
from lcmsite.catalogue.problems import problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import text_in
from lcmsite.dashboard.parts.highlighting import marked_spans
from lcmsite.dashboard.service import ask, ask_in_text
from retrieval.describing.browsing import BrowseSort
from retrieval.types import GrepMode, GrepResult, GrepScope, GrepSort, ItemKind, Match

ON_A_PAGE = 20
MODES = ((GrepMode.FULL_TEXT, "words"), (GrepMode.REGEX, "a regular expression"))
SCOPES = (
    (GrepScope.BOTH, "messages and summaries"),
    (GrepScope.MESSAGES, "messages"),
    (GrepScope.SUMMARIES, "summaries"),
    (GrepScope.FILES, "files"),
    (GrepScope.ALL, "everything"),
)
ORDERS = {
    GrepSort.RELEVANCE: "best first",
    GrepSort.RECENCY: "newest first",
    GrepSort.HYBRID: "best and newest first",
}
# So many conversations can be chosen from a list, those used last; any other one by its address.
CHOICES = 100
# A message that is in no summary is shown in the lineage with so many on either side.
AROUND = 40
SEVERAL = ("roles", "part_types")
SINGLE = ("query", "mode", "scope", "conversation_id", "since", "until", "from_seq", "to_seq", "depth", "under", "sort")
# Those that are folded away until somebody uses one.
FOLDED = ("since", "until", "from_seq", "to_seq", "depth", "under", "roles", "part_types", "tool_names", "cold")


@page()
def search(visit: Visit) -> HttpResponse:
    """The form; what it finds comes into it afterwards, and a script gets it alone, or the next of it."""
    given = visit.request.GET
    asked = _asked(given)
    if visit.is_part:
        return visit.show("dashboard/_matches.html", **_found(visit, asked, given.get("cursor")))
    recent = ask(visit.caller, "lcm_browse", sort=BrowseSort.UPDATED, limit=CHOICES)
    conversations = [each.conversation for each in recent.conversations]
    chosen = given.get("conversation_id", "")
    return visit.show(
        "dashboard/search.html",
        conversations=conversations,
        unlisted=chosen if chosen not in {"", *(str(each.conversation_id) for each in conversations)} else "",
        is_open=any(name in asked for name in FOLDED),
        modes=MODES,
        scopes=SCOPES,
        sorts=ORDERS.items(),
        roles=list(Role),
        part_types=list(PartType),
        asked=asked,
        address=_address(asked) if "query" in asked else None,
    )


def _asked(given: QueryDict) -> dict[str, Any]:
    """What the form says, in the words of the operation; what is empty is not said."""
    asked: dict[str, Any] = {name: text_in(given, name) for name in SINGLE if text_in(given, name)}
    # Blanks at the ends of an expression mean something.
    if "query" in asked:
        asked["query"] = str(given["query"])
    asked |= {name: given.getlist(name) for name in SEVERAL if any(given.getlist(name))}
    if tools := [name.strip() for name in text_in(given, "tool_names").split(",") if name.strip()]:
        asked["tool_names"] = tools
    if given.get("cold") == "true":
        asked["cold"] = "true"
    return asked


def _found(visit: Visit, asked: dict[str, Any], cursor: str | None) -> dict[str, Any]:
    """What there is to show; a filter that nothing can answer to is told beside the form, which stays as it was."""
    if "query" not in asked:
        return {"found": None, "asked": asked}
    try:
        result: GrepResult = ask_in_text(visit.caller, "lcm_grep", asked, limit=ON_A_PAGE, cursor=cursor or None)
    except LcmError as refusal:
        return {"found": None, "asked": asked, "problem": problem_of(refusal)}
    return {
        "found": result,
        "asked": asked,
        "hits": [_hit(match) for match in result.matches],
        "is_first": not cursor,
        "order": ORDERS[result.sort],
        "more": _address(asked, cursor=result.cursor) if result.more else None,
        "cold_address": _address(asked, cold="true") if result.cold_messages and not result.cold else None,
    }


def _address(asked: dict[str, Any], **besides: str | None) -> str:
    """What was asked, and something besides, as the form would say it."""
    tools = {"tool_names": ",".join(asked["tool_names"])} if "tool_names" in asked else {}
    return urlencode({**asked, **tools, **besides}, doseq=True)


def _hit(match: Match) -> dict[str, Any]:
    """A match, its text marked, and the node of the lineage where it is now, if it is in one."""
    marked: SafeString = marked_spans(match.snippet.text, match.snippet.highlights)
    node = match.id if match.kind is ItemKind.SUMMARY else match.covered_by
    first, last = max(1, match.first_seq - AROUND), match.last_seq + AROUND
    return {"match": match, "marked": marked, "node": node, "first": first, "last": last}
