"""What administrators did here, and when: the log that nothing is removed from."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse

from conversations.audit import Act
from conversations.types import AuditRecord
from lcmsite.dashboard.addresses import number_in
from lcmsite.dashboard.asking import ask
from lcmsite.dashboard.pages import Visit, page
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
    kept = {name: value for name, value in asked.items() if value is not None}
    shown = found[:ON_A_PAGE]
    return visit.show(
        "dashboard/audit.html",
        entries=[{"act": entry, "told": _told(entry)} for entry in shown],
        acts=list(Act),
        asked=asked,
        first_page=urlencode(kept),
        is_first=before is None,
        older=urlencode({**kept, "before": shown[-1].audit_id}) if len(found) > ON_A_PAGE else None,
    )


def _told(entry: AuditRecord) -> list[tuple[str, str]]:
    """What is known of an act besides, in words."""
    return [(name.replace("_", " "), _said(value)) for name, value in entry.detail.items()]


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_said, value)) or "none"
    return "none" if value is None else json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
