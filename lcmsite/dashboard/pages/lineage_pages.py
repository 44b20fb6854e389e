"""The lineage: a zoomable picture, a tree, summaries beside their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse

from compaction.summarizing.retention_score import kept_facts
from conversations.errors import NotFound
from lcmsite.dashboard.parts.lineage_layout import picture, resolution
from lcmsite.dashboard.parts.lineage_svg import shapes
from lcmsite.dashboard.parts.marked_text import marked_words
from lcmsite.dashboard.visit import Visit, number_in, page, texts_in
from retrieval.describing.lineage import Direction
from retrieval.types import Description, ItemKind

LEAST_WIDTH, USUAL_WIDTH, MOST_WIDTH = 320, 1100, 4000
# Maximum number of tokens of sources on one page beside a summary.
SOURCE_TOKENS = 6_000
# The maximum number of tree branches shown at once. A context without compaction may have more.
MOST_TWIGS = 300
# The params of the impact page's form.
FILTERS = ("direction", "max_depth", "min_confidence")
STYLE = Path(__file__).parents[2] / "static" / "lcm" / "lineage.css"


@page()
def lineage(visit: Visit, conversation_id: int) -> HttpResponse:
    """The page, with its first picture."""
    return visit.show(
        "lineage.html",
        chosen=visit.request.GET.get("node", ""),
        **_picture(visit, conversation_id),
    )


@page()
def window(visit: Visit, conversation_id: int) -> HttpResponse:
    """The picture of a window, as a part of the page or as an SVG file."""
    shown = _picture(visit, conversation_id)
    if "download" not in visit.request.GET:
        return visit.show("_lineage_picture.html", conversation_id=conversation_id, **shown)
    drawn = render_to_string(
        "dashboard/_lineage_svg.html",
        {"visit": visit, "conversation_id": conversation_id, "style": STYLE.read_text("utf-8"), **shown},
    )
    return HttpResponse(
        drawn,
        content_type="image/svg+xml",
        headers={"Content-Disposition": f'attachment; filename="lineage-{conversation_id}.svg"'},
    )


@page()
def summary(visit: Visit, conversation_id: int, summary_id: str) -> HttpResponse:
    """A summary beside its sources, with the identifiers it kept highlighted."""
    return visit.show("_lineage_summary.html", **_beside(visit, conversation_id, summary_id))


@page()
def sources(visit: Visit, conversation_id: int, summary_id: str) -> HttpResponse:
    return visit.show("_lineage_sources.html", **_beside(visit, conversation_id, summary_id))


@page()
def branch(visit: Visit, conversation_id: int, summary_id: str) -> HttpResponse:
    """The sources of a summary, as branches of the tree."""
    described = _summary(visit, conversation_id, summary_id)
    sources = [each for each in described.manifest if each.summary_id in described.sources]
    return visit.show(
        "_lineage_branches.html",
        conversation_id=conversation_id,
        sources=sorted(sources, key=lambda each: each.first_seq),
        spans=described.source_messages,
        is_complete=len(sources) == sum(id.startswith("sum_") for id in described.sources),
    )


def _beside(visit: Visit, conversation_id: int, summary_id: str) -> dict[str, Any]:
    described = _summary(visit, conversation_id, summary_id)
    expansion = visit.call(
        "lcm_expand",
        summary_id=summary_id,
        include_messages=True,
        token_cap=SOURCE_TOKENS,
        cursor=visit.request.GET.get("cursor"),
    )
    content = described.content or ""
    kept = {item.id: kept_facts(item.content, content) for item in expansion.items}
    return {
        "conversation_id": conversation_id,
        "described": described,
        "marked_summary": marked_words(content, frozenset().union(*kept.values())),
        "sources": [{**vars(item), "marked": marked_words(item.content, kept[item.id])} for item in expansion.items],
        "cursor": expansion.cursor,
    }


def _summary(visit: Visit, conversation_id: int, summary_id: str) -> Description:
    described: Description = visit.call("lcm_describe", id=summary_id)
    if described.kind is not ItemKind.SUMMARY or described.conversation_id != conversation_id:
        raise NotFound(f"There is no summary {summary_id[:80]!r} in this conversation.")
    return described


def _picture(visit: Visit, conversation_id: int) -> dict[str, Any]:
    given = visit.request.GET
    width = min(MOST_WIDTH, max(LEAST_WIDTH, number_in(given, "width") or USUAL_WIDTH))
    window = visit.call(
        "lcm_lineage_window",
        conversation_id=conversation_id,
        from_seq=number_in(given, "from"),
        to_seq=number_in(given, "to"),
        as_of_run=given.get("run") or None,
        resolution=resolution(width),
    )
    # Branches are drawn only for the present, not for a past run: earlier positions of the head are not drawn.
    is_branched = window.conversation.moves and window.as_of_run is None
    branches = visit.call_all("lcm_branches", conversation_id=conversation_id) if is_branched else []
    drawn = picture(window, width=width, branches=branches)
    page = {"workspace": visit.workspace.name, "conversation_id": conversation_id}
    runs = [run.run_id for run in window.runs]
    shown = sorted([*(each for each in window.summaries if each.active), *window.raw], key=lambda each: each.first_seq)
    return {
        "window": window,
        "conversation": window.conversation,
        "picture": drawn,
        "shapes": shapes(drawn, transcript=reverse("transcript", kwargs=page)),
        "place": runs.index(window.as_of_run) if window.as_of_run in runs else len(runs),
        "query": urlencode({"from": window.first_seq, "to": window.last_seq, "run": window.as_of_run or ""}),
        "shown": shown[:MOST_TWIGS],
        "unlisted": len(shown) - MOST_TWIGS,
        "is_whole": window.first_seq == 1 and window.last_seq >= window.message_count,
    }


@page()
def impact(visit: Visit, item_id: str) -> HttpResponse:
    """What was made from a message, summary or file, or what it was made from."""
    filters = texts_in(visit.request.GET, FILTERS)
    found = visit.call("lcm_impact", in_text=filters, id=item_id)
    return visit.show("impact.html", found=found, filters=filters, directions=list(Direction))
