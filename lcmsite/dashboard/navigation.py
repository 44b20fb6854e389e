"""The menu of a workspace and the tabs of a conversation, for one user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.urls import resolve, reverse

from lcmsite.dashboard.visit import Visit

# The title of each page, by group and by the name of the page in `urls`.
MENU: Mapping[str, Mapping[str, str]] = {
    "Memory": {
        "overview": "Overview", "conversations": "Conversations", "projects": "Projects", "search": "Search",
        "ask": "Ask", "about": "Everything about", "runs": "Runs and jobs", "map-runs": "Map runs", "files": "Files",
    },
    "Trust": {
        "integrity": "Integrity", "quarantine": "Quarantine", "retention": "Retention", "erasures": "Erasure",
    },
    "Access": {"grants": "Grants", "keys": "API keys", "members": "Members", "workspaces": "Workspaces"},
    "Site": {"models": "Models", "clock": "Clock and queues", "settings": "Settings", "audit": "Audit"},
}  # fmt: skip
TABS: Mapping[str, str] = {
    "transcript": "Transcript", "lineage": "Lineage", "inspector": "Context", "conversation-runs": "Runs",
    "plans": "Plan", "conversation-files": "Files", "conversation-trust": "Trust",
}  # fmt: skip

# Pages without a link of their own: the link of the page on the right is marked as current.
UNDER = {"import": "conversations", "message": "conversations", "boundaries": "conversation-runs"}
# The URLs of these pages are prefixes of the URLs of other pages.
ROOTS = frozenset({"overview", "transcript"})


@dataclass(frozen=True)
class Link:
    title: str
    url: str
    is_here: bool


def menu(visit: Visit) -> dict[str, list[Link]]:
    """Links to the workspace's pages that this user may open, by group."""
    groups = {title: _links(visit, pages) for title, pages in MENU.items()}
    return {title: links for title, links in groups.items() if links}


def tabs(visit: Visit, conversation_id: int) -> list[Link]:
    """Links to the conversation's pages that this user may open."""
    return _links(visit, TABS, conversation_id=conversation_id)


def _links(visit: Visit, pages: Mapping[str, str], **path: Any) -> list[Link]:
    """Links to the pages that this user may open; the current page is marked."""
    here, match = visit.request.path, visit.request.resolver_match
    belongs_to = UNDER.get(match.url_name or "") if match else None
    links = []
    for name, title in pages.items():
        view = _view(name)
        url = reverse(name, kwargs={"workspace": visit.workspace.name, **path})
        if visit.caller.may(view.scope) and (visit.caller.is_operator or not view.operator_only):
            is_below = name not in ROOTS and here.startswith(url)
            links.append(Link(title, url, is_here=here == url or is_below or name == belongs_to))
    return links


@cache
def _view(name: str) -> Any:
    """The view of a page, found by its URL in any workspace and conversation."""
    path = {"conversation_id": 1} if name in TABS else {}
    return resolve(reverse(name, kwargs={"workspace": "default", **path})).func
