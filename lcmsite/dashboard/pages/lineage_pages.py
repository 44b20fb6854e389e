"""The lineage of a conversation: a picture to move about in, the same as a tree, a summary beside its sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse

from compaction.summarizing.retention_score import survivors
from conversations.errors import NotFound
from conversations.fast.records import every_field
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import number_in
from lcmsite.dashboard.parts.highlighting import marked_words
from lcmsite.dashboard.parts.lineage_layout import picture, resolution
from lcmsite.dashboard.parts.lineage_svg import shapes
from lcmsite.dashboard.service import ask
from retrieval.types import Description, ItemKind

LEAST_WIDTH, USUAL_WIDTH, MOST_WIDTH = 320, 1100, 4000
# Of a summary's sources, so much is shown beside it; the rest is a click away.
SOURCE_TOKENS = 6_000
# Of the tree so many twigs at once: what a model sees is less, but while a long history is made room for.
MOST_TWIGS = 300
STYLE = Path(__file__).parents[2] / "static" / "lcm" / "lineage.css"


@page()
def lineage(visit: Visit, conversation_id: int) -> HttpResponse:
    """The page; its picture comes with it, so that nothing has to be waited for twice."""
    return visit.show(
        "dashboard/lineage.html",
        chosen=visit.request.GET.get("node", ""),
        **_seen(visit, conversation_id),
    )


@page()
def window(visit: Visit, conversation_id: int) -> HttpResponse:
    """The picture of a window alone; as a file of its own if that is asked for."""
    seen = _seen(visit, conversation_id)
    if "download" not in visit.request.GET:
        return visit.show("dashboard/_lineage_picture.html", conversation_id=conversation_id, **seen)
    drawn = render_to_string(
        "dashboard/_lineage_svg.html",
        {"visit": visit, "conversation_id": conversation_id, "style": STYLE.read_text("utf-8"), **seen},
    )
    return HttpResponse(
        drawn,
        content_type="image/svg+xml",
        headers={"Content-Disposition": f'attachment; filename="lineage-{conversation_id}.svg"'},
    )


@page()
def summary(visit: Visit, conversation_id: int, summary_id: str) -> HttpResponse:
    """A summary's text beside what it was made from, with what it kept of that marked in both."""
    return visit.show("dashboard/_lineage_summary.html", **_beside(visit, conversation_id, summary_id))


@page()
def sources(visit: Visit, conversation_id: int, summary_id: str) -> HttpResponse:
    """The next of a summary's sources."""
    return visit.show("dashboard/_lineage_sources.html", **_beside(visit, conversation_id, summary_id))


@page()
def branch(visit: Visit, conversation_id: int, summary_id: str) -> HttpResponse:
    """What a summary was made from, as the next twigs of the tree."""
    described = _summary(visit, conversation_id, summary_id)
    sources = [each for each in described.manifest if each.summary_id in described.sources]
    return visit.show(
        "dashboard/_lineage_branches.html",
        conversation_id=conversation_id,
        sources=sorted(sources, key=lambda each: each.first_seq),
        spans=described.source_messages,
        is_complete=len(sources) == sum(id.startswith("sum_") for id in described.sources),
    )


def _beside(visit: Visit, conversation_id: int, summary_id: str) -> dict[str, Any]:
    described = _summary(visit, conversation_id, summary_id)
    expansion = ask(
        visit.caller,
        "lcm_expand",
        summary_id=summary_id,
        include_messages=True,
        token_cap=SOURCE_TOKENS,
        cursor=visit.request.GET.get("cursor"),
    )
    told = described.content or ""
    kept = {item.id: survivors(item.content, told) for item in expansion.items}
    return {
        "conversation_id": conversation_id,
        "described": described,
        "marked_summary": marked_words(told, frozenset().union(*kept.values())),
        "sources": [
            {**every_field(item), "marked": marked_words(item.content, kept[item.id])} for item in expansion.items
        ],
        "cursor": expansion.cursor,
    }


def _summary(visit: Visit, conversation_id: int, summary_id: str) -> Description:
    described: Description = ask(visit.caller, "lcm_describe", id=summary_id)
    if described.kind is not ItemKind.SUMMARY or described.conversation_id != conversation_id:
        raise NotFound(f"There is no summary {summary_id[:80]!r} in this conversation.")
    return described


def _seen(visit: Visit, conversation_id: int) -> dict[str, Any]:
    given = visit.request.GET
    width = min(MOST_WIDTH, max(LEAST_WIDTH, number_in(given, "width") or USUAL_WIDTH))
    told = ask(
        visit.caller,
        "lcm_lineage_window",
        conversation_id=conversation_id,
        from_seq=number_in(given, "from"),
        to_seq=number_in(given, "to"),
        as_of_run=given.get("run") or None,
        resolution=resolution(width),
    )
    drawn = picture(told, width=width)
    page = {"workspace": visit.workspace.name, "conversation_id": conversation_id}
    runs = [run.run_id for run in told.runs]
    shown = sorted([*(each for each in told.summaries if each.active), *told.raw], key=lambda each: each.first_seq)
    return {
        "window": told,
        "conversation": told.conversation,
        "picture": drawn,
        "shapes": shapes(drawn, transcript=reverse("transcript", kwargs=page)),
        "place": runs.index(told.as_of_run) if told.as_of_run in runs else len(runs),
        "query": urlencode({"from": told.first_seq, "to": told.last_seq, "run": told.as_of_run or ""}),
        "shown": shown[:MOST_TWIGS],
        "unlisted": len(shown) - MOST_TWIGS,
        "is_whole": told.first_seq == 1 and told.last_seq >= told.message_count,
    }
