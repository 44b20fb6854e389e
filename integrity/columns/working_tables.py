"""The tables of compaction, checks, repairs, retention, retrieval and the site."""

from __future__ import annotations

from integrity.columns.declaration import SITE_ROW_SEAL, Table, operational, row_sealed

BELONGS = "rows_belong_to_something"
AUDITED = "audited_rows_are_there"

_UNCOUNTED = "nothing counts them, so a removed row is not detected"
_SWEPT = "a report without an applied repair is deleted after a while, with its findings and plans"
_OF_WORKSPACE = "t.workspace_id = %(workspace_id)s"
_OF_REPORTS_WORKSPACE = "t.report_id IN (SELECT report_id FROM integrity_reports WHERE workspace_id = %(workspace_id)s)"

RECORDED = (
    Table(
        name="compaction_runs",
        id="t.run_id",
        conversation="t.conversation_id",
        columns=row_sealed(
            "run_id conversation_id job_id reason outcome started_at finished_at tokens_before tokens_after"
            " leaf_summaries condensed_summaries redone_summaries details",
            BELONGS,
        ),
        removal_note=f"{_UNCOUNTED}, but in the `run_id` of its summaries",
    ),
    Table(
        name="compaction_plans",
        id="t.plan_id",
        conversation="t.conversation_id",
        columns=row_sealed(
            "plan_id conversation_id created_at last_seq tokens_before tokens_expected context_hash summarizer policy"
            " steps figures requested_at refusal executed_at run_id",
            BELONGS,
        ),
        removal_note=_UNCOUNTED,
    ),
    Table(
        name="compaction_boundaries",
        id="'boundary_' || t.boundary_id",
        conversation="t.conversation_id",
        columns=row_sealed("boundary_id conversation_id host_reference last_seq recorded_at metadata", BELONGS),
        removal_note=f"{_UNCOUNTED}; an exported ledger has them",
    ),
    Table(
        name="integrity_reports",
        id="t.report_id",
        in_workspace=_OF_WORKSPACE,
        columns=row_sealed(
            "report_id workspace_id conversation_id mode started_at finished_at conversations_checked"
            " messages_checked counts costs is_clean unchecked",
            BELONGS,
            seal=SITE_ROW_SEAL,
        ),
        removal_note=_SWEPT,
    ),
    Table(
        name="integrity_findings",
        id="'finding_' || t.finding_id",
        in_workspace=_OF_REPORTS_WORKSPACE,
        columns=row_sealed(
            "finding_id report_id code severity conversation_id target detail", BELONGS, seal=SITE_ROW_SEAL
        ),
        removal_note=_SWEPT,
    ),
    Table(
        name="repair_plans",
        id="t.plan_id",
        in_workspace=_OF_REPORTS_WORKSPACE,
        columns=row_sealed(
            "plan_id report_id created_at state applied_at undone_at ledger_file_id unplanned outcome",
            BELONGS,
            seal=SITE_ROW_SEAL,
        ),
        removal=(AUDITED, BELONGS),
        removal_note=f"one that was applied shows; of the others, {_SWEPT}",
    ),
    Table(
        name="repair_steps",
        id="'step_' || t.step_id",
        in_workspace="t.plan_id IN (SELECT plan_id FROM repair_plans JOIN integrity_reports r USING (report_id)"
        " WHERE r.workspace_id = %(workspace_id)s)",
        columns=row_sealed(
            "step_id plan_id ordinal operation conversation_id target before after risk reversible why codes state"
            " approved_by approved_at applied_at undo",
            BELONGS,
            seal=SITE_ROW_SEAL,
        ),
        removal_note=_SWEPT,
    ),
    Table(
        name="erasures",
        id="t.erasure_id",
        conversation="t.conversation_id",
        columns=row_sealed(
            "erasure_id conversation_id requested_by requested_at expires_at message_ids file_ids is_whole"
            " fingerprint confirmation act_id bytes_left",
            BELONGS,
        ),
        removal=(AUDITED,),
    ),
    Table(
        name="assembly_receipts",
        id="t.receipt_id",
        conversation="t.conversation_id",
        columns=row_sealed("receipt_id conversation_id figures lines", BELONGS)
        | operational("created_at", "when the same context was last assembled"),
        removal_note="only the newest of each conversation are kept",
    ),
    Table(
        name="grants",
        id="t.grant_id",
        in_workspace=_OF_WORKSPACE,
        columns=row_sealed(
            "grant_id workspace_id question item_ids depth token_cap tokens_used reads created_at expires_at"
            " revoked_at refusals",
            BELONGS,
            seal=SITE_ROW_SEAL,
        ),
        removal_note="removed a month after they expire",
    ),
    Table(
        name="workspaces",
        id="'workspace_' || t.workspace_id",
        in_workspace=_OF_WORKSPACE,
        columns=row_sealed("workspace_id name created_at cold_after_days", BELONGS, seal=SITE_ROW_SEAL),
        removal=(BELONGS,),
        removal_note="the removal of an empty one is not detected",
    ),
    Table(
        name="api_keys",
        id="'key_' || t.api_key_id",
        in_workspace=_OF_WORKSPACE,
        columns=row_sealed(
            "api_key_id workspace_id name prefix key_hash scopes created_at expires_at revoked_at",
            BELONGS,
            seal=SITE_ROW_SEAL,
        )
        | operational("last_used_at", "written by use"),
        removal=("audited_site_rows_are_there",),
    ),
    Table(
        name="memberships",
        id="'membership_' || t.membership_id",
        in_workspace=_OF_WORKSPACE,
        columns=row_sealed("membership_id user_id workspace_id role created_at", BELONGS, seal=SITE_ROW_SEAL),
        removal_note="the audit log names removed members",
    ),
    Table(
        name="compaction_jobs",
        id="'job_' || t.job_id",
        conversation="t.conversation_id",
        removal_note="an entry of a queue: workers claim it, renew its lease and close it",
    ),
)

# Why all columns of these tables may change, and rows may go.
OPERATIONAL = {
    "an entry of a queue: workers claim it, renew its lease and close it": "integrity_scans",
    "the state of a circuit breaker and a spending limit, written by every call": "model_endpoints",
    "says what an incremental check may pass over; a full check does not read it": "conversation_checks",
    "the position of the sweep to the cold tier": "cold_progress",
    "an unfinished upload; the finished file is sealed": "uploads upload_chunks",
    "Django's accounts; access to data is a membership": (
        "auth_user auth_group auth_group_permissions auth_permission auth_user_groups auth_user_user_permissions"
    ),
    "Django's own": "django_admin_log django_content_type django_migrations django_session lcm_cache",
    "django-axes' own: failed logins": (
        "axes_accessattempt axes_accessattemptexpiration axes_accessfailurelog axes_accesslog"
    ),
    "Huey's own: wake-ups, each with its own durable row elsewhere": "huey_counter huey_kv huey_schedule huey_task",
}

TABLES = RECORDED + tuple(
    Table(name, removal_note=reason) for reason, names in OPERATIONAL.items() for name in names.split()
)
