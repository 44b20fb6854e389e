"""What is known of the integrity of everything: how much was checked, when, and whether anything does not hold."""

from __future__ import annotations

from django.db.models import Q

from conversations.scope import Scope
from conversations.sql import rows
from integrity.models import IntegrityReport
from integrity.reports import outline_of
from integrity.types import IntegrityState, ScanMode

_CONVERSATIONS = """
    SELECT count(*), coalesce(sum(c.next_seq - 1), 0)::bigint,
           count(k.conversation_id),
           coalesce(sum(c.next_seq - 1) FILTER (WHERE k.conversation_id IS NOT NULL), 0)::bigint,
           count(*) FILTER (WHERE NOT k.is_clean)
    FROM conversations c LEFT JOIN conversation_checks k USING (conversation_id)
    WHERE %(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s
"""


def state_of(scope: Scope) -> IntegrityState:
    """The state of a workspace, or of the whole site."""
    [[conversations, messages, checked_conversations, checked_messages, damaged]] = rows(
        _CONVERSATIONS, {"workspace_id": scope.workspace_id}
    )
    # Of the whole site there are reports of their own, which belong to no workspace.
    reports = IntegrityReport.objects.filter(conversation=None, workspace=scope.workspace_id)
    newest_first = reports.filter(finished_at__isnull=False).order_by("-started_at", "-report_id").values("pk")
    # A check that had to leave conversations out is not of everything.
    full = newest_first.filter(mode=ScanMode.FULL, unchecked=[])
    found = reports.filter(Q(pk__in=newest_first[:1]) | Q(pk__in=full[:1])).order_by("-started_at", "-report_id")
    newest = next((outline_of(report) for report in found), None)
    whole = next(
        (outline_of(report) for report in found if report.mode == ScanMode.FULL and not report.unchecked), None
    )
    findings = newest.finding_count if newest is not None else 0
    return IntegrityState(
        conversations=conversations,
        messages=messages,
        conversations_checked=checked_conversations,
        messages_checked=checked_messages,
        conversations_with_findings=damaged,
        finding_count=findings,
        messages_since_whole_check=max(0, messages - whole.messages_checked) if whole is not None else messages,
        is_clean=False if damaged or findings else None if whole is None else True,
        whole_report_id=whole.report_id if whole is not None else None,
        whole_checked_at=whole.started_at if whole is not None else None,
        newest_report_id=newest.report_id if newest is not None else None,
    )
