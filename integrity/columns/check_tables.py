"""The tables of checks, repairs, retention and retrieval."""

from __future__ import annotations

from integrity.columns.declaration import Table, operational, operational_table, row_sealed, site_row_sealed

BELONGS = "rows_belong_to_something"
AUDITED = "audited_rows_are_there"

_SWEPT = "a report without an applied repair is deleted after a while, with its findings and plans"

REPORTS = Table(
    name="integrity_reports",
    id="t.report_id",
    in_workspace="t.workspace_id = %(workspace_id)s",
    columns=site_row_sealed(
        "report_id workspace_id conversation_id mode started_at finished_at conversations_checked messages_checked"
        " counts costs is_clean unchecked",
        BELONGS,
    ),
    removal_note=_SWEPT,
)

FINDINGS = Table(
    name="integrity_findings",
    id="'finding_' || t.finding_id",
    in_workspace="t.report_id IN (SELECT report_id FROM integrity_reports WHERE workspace_id = %(workspace_id)s)",
    columns=site_row_sealed("finding_id report_id code severity conversation_id target detail", BELONGS),
    removal_note=_SWEPT,
)

PLANS = Table(
    name="repair_plans",
    id="t.plan_id",
    in_workspace="t.report_id IN (SELECT report_id FROM integrity_reports WHERE workspace_id = %(workspace_id)s)",
    columns=site_row_sealed(
        "plan_id report_id created_at state applied_at undone_at ledger_file_id unplanned outcome", BELONGS
    ),
    removal=(AUDITED, BELONGS),
    removal_note=f"one that was applied shows; of the others, {_SWEPT}",
)

STEPS = Table(
    name="repair_steps",
    id="'step_' || t.step_id",
    in_workspace="t.plan_id IN (SELECT plan_id FROM repair_plans JOIN integrity_reports r USING (report_id)"
    " WHERE r.workspace_id = %(workspace_id)s)",
    columns=site_row_sealed(
        "step_id plan_id ordinal operation conversation_id target before after risk reversible why codes state"
        " approved_by approved_at applied_at undo",
        BELONGS,
    ),
    removal_note=_SWEPT,
)

ERASURES = Table(
    name="erasures",
    id="t.erasure_id",
    conversation="t.conversation_id",
    columns=row_sealed(
        "erasure_id conversation_id requested_by requested_at expires_at message_ids file_ids is_whole fingerprint"
        " confirmation act_id bytes_left",
        BELONGS,
    ),
    removal=(AUDITED,),
)

RECEIPTS = Table(
    name="assembly_receipts",
    id="t.receipt_id",
    conversation="t.conversation_id",
    columns=row_sealed("receipt_id conversation_id figures lines", BELONGS)
    | operational("created_at", "when the same context was last assembled"),
    removal_note="only the newest of each conversation are kept",
)

GRANTS = Table(
    name="grants",
    id="t.grant_id",
    in_workspace="t.workspace_id = %(workspace_id)s",
    columns=site_row_sealed(
        "grant_id workspace_id question item_ids depth token_cap tokens_used reads created_at expires_at revoked_at"
        " refusals",
        BELONGS,
    ),
    removal_note="removed a month after they expire",
)

_QUEUE = "an entry of a queue: workers claim it, renew its lease and close it"
_CACHE = "says what an incremental check may pass over; a full check does not read it"

TABLES = (
    REPORTS,
    FINDINGS,
    PLANS,
    STEPS,
    ERASURES,
    RECEIPTS,
    GRANTS,
    operational_table(
        "integrity_scans",
        "scan_id workspace_id conversation_id mode with_plan state requested_at run_after leased_until finished_at"
        " fence attempts last_error position report_id plan_id",
        _QUEUE,
    ),
    operational_table("conversation_checks", "conversation_id checked_at is_clean row_version", _CACHE),
    operational_table(
        "cold_progress", "conversation_id through_seq moved_at", "the position of the sweep to the cold tier"
    ),
)
