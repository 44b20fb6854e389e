"""The pages of trust."""

from __future__ import annotations

from django.urls import path
from django.urls.resolvers import URLPattern

from lcmsite.dashboard.trust import erasures, ledger, repairs, reports, retention, withheld

WORKSPACE = "w/<str:workspace>/"
INTEGRITY = WORKSPACE + "integrity/"
REPAIRS = INTEGRITY + "repairs/<str:repair_id>/"
CONVERSATION = WORKSPACE + "conversations/<int:conversation_id>/"

urlpatterns: list[URLPattern] = [
    path(INTEGRITY, reports.reports, name="integrity"),
    path(INTEGRITY + "place/", reports.place, name="place"),
    path(INTEGRITY + "scans/", reports.begin_scan, name="begin-scan"),
    path(INTEGRITY + "scans/<int:scan_id>/", reports.scan, name="scan"),
    path(INTEGRITY + "reports/<str:report_id>/", reports.report, name="report"),
    path(INTEGRITY + "reports/<str:report_id>/repairs/", repairs.plan, name="plan-repairs"),
    path(REPAIRS, repairs.repairs, name="repairs"),
    path(REPAIRS + "approval/", repairs.approve, name="approve-repairs"),
    path(REPAIRS + "application/", repairs.apply, name="apply-repairs"),
    path(REPAIRS + "undoing/", repairs.undo, name="undo-repairs"),
    path(REPAIRS + "history/", repairs.history, name="repair-history"),
    path(WORKSPACE + "quarantine/", withheld.quarantine, name="quarantine"),
    path(WORKSPACE + "quarantine/new/", withheld.withhold, name="withhold"),
    path(WORKSPACE + "quarantine/<int:quarantine_id>/release/", withheld.release, name="release"),
    path(WORKSPACE + "retention/", retention.retention, name="retention"),
    path(WORKSPACE + "retention/rule/", retention.set_retention, name="set-retention"),
    path(WORKSPACE + "retention/storage/", retention.storage, name="storage"),
    path(WORKSPACE + "erasures/", erasures.erasures, name="erasures"),
    path(CONVERSATION + "trust/", retention.conversation_trust, name="conversation-trust"),
    path(CONVERSATION + "ledger/", ledger.ledger, name="conversation-ledger"),
    path(CONVERSATION + "archive/", retention.archive, name="archive"),
    path(CONVERSATION + "thaw/", retention.thaw, name="thaw"),
    path(CONVERSATION + "erasure/", erasures.choose, name="choose-erasure"),
    path(CONVERSATION + "erasure/preview/", erasures.preview, name="preview-erasure"),
    path(CONVERSATION + "erasure/execution/", erasures.erase, name="erase"),
]
