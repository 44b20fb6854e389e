"""What administrators did here, and when: the log that nothing is removed from."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse

from conversations.audit import Act
from conversations.types import AuditRecord
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import number_in
from lcmsite.dashboard.parts.pager import paged
from lcmsite.dashboard.service import ask
from lcmsite.types import KeyScope

ON_A_PAGE = 50


@page(KeyScope.ADMIN)
def audit(visit: Visit) -> HttpResponse:
    """The newest acts, or those before one; of one kind, of one conversation."""
    given = visit.request.GET
    act = given.get("act", "")
    asked = {"act": act if act in list(Act) else None, "conversation_id": number_in(given, "conversation_id")}
    before = number_in(given, "before")
    found: list[AuditRecord] = ask(visit.caller, "lcm_audit", before_id=before, limit=ON_A_PAGE + 1, **asked)
    shown = paged(found, most=ON_A_PAGE, key="audit_id", before=before, asked=asked)
    return visit.show(
        "dashboard/audit.html",
        entries=[{"act": entry, "told": _told(entry)} for entry in shown.rows],
        acts=list(Act),
        asked=asked,
        paged=shown,
    )


def _told(entry: AuditRecord) -> list[tuple[str, str]]:
    """What is known of an act besides, in words."""
    return [(name.replace("_", " "), _said(value)) for name, value in entry.detail.items()]


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_said, value)) or "none"
    return "none" if value is None else json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
