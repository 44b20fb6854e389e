"""Addresses of the trust pages."""

from __future__ import annotations

from django.urls import path
from django.urls.resolvers import URLPattern

from lcmsite.dashboard.trust import (
    erasure_pages,
    quarantine_pages,
    repair_pages,
    report_pages,
    retention_pages,
)

WORKSPACE = "w/<str:workspace>/"
INTEGRITY = WORKSPACE + "integrity/"
REPAIRS = INTEGRITY + "repairs/<str:repair_id>/"
CONVERSATION = WORKSPACE + "conversations/<int:conversation_id>/"

urlpatterns: list[URLPattern] = [
    path(INTEGRITY, report_pages.reports, name="integrity"),
    path(INTEGRITY + "place/", report_pages.place, name="place"),
    path(INTEGRITY + "scans/", report_pages.begin_scan, name="begin-scan"),
    path(INTEGRITY + "scans/<int:scan_id>/", report_pages.scan, name="scan"),
    path(INTEGRITY + "reports/<str:report_id>/", report_pages.report, name="report"),
    path(INTEGRITY + "reports/<str:report_id>/repairs/", repair_pages.plan, name="plan-repairs"),
    path(REPAIRS, repair_pages.repairs, name="repairs"),
    path(REPAIRS + "approval/", repair_pages.approve, name="approve-repairs"),
    path(REPAIRS + "application/", repair_pages.apply, name="apply-repairs"),
    path(REPAIRS + "undoing/", repair_pages.undo, name="undo-repairs"),
    path(REPAIRS + "history/", repair_pages.history, name="repair-history"),
    path(WORKSPACE + "quarantine/", quarantine_pages.quarantine, name="quarantine"),
    path(WORKSPACE + "quarantine/new/", quarantine_pages.withhold, name="withhold"),
    path(WORKSPACE + "quarantine/<int:quarantine_id>/release/", quarantine_pages.release, name="release"),
    path(WORKSPACE + "retention/", retention_pages.retention, name="retention"),
    path(WORKSPACE + "retention/rule/", retention_pages.set_retention, name="set-retention"),
    path(WORKSPACE + "retention/storage/", retention_pages.storage, name="storage"),
    path(WORKSPACE + "erasures/", erasure_pages.erasures, name="erasures"),
    path(CONVERSATION + "trust/", retention_pages.conversation_trust, name="conversation-trust"),
    path(CONVERSATION + "ledger/", retention_pages.ledger, name="conversation-ledger"),
    path(CONVERSATION + "archive/", retention_pages.archive, name="archive"),
    path(CONVERSATION + "thaw/", retention_pages.thaw, name="thaw"),
    path(CONVERSATION + "erasure/", erasure_pages.choose, name="choose-erasure"),
    path(CONVERSATION + "erasure/preview/", erasure_pages.preview, name="preview-erasure"),
    path(CONVERSATION + "erasure/execution/", erasure_pages.erase, name="erase"),
]
