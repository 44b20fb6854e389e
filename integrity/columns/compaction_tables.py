"""The tables of compaction."""

from __future__ import annotations

from integrity.columns.declaration import Table, operational, operational_table, row_sealed

BELONGS = "rows_belong_to_something"

_UNCOUNTED = "nothing counts them, so a removed row is not detected"

RUNS = Table(
    name="compaction_runs",
    id="t.run_id",
    conversation="t.conversation_id",
    columns=row_sealed(
        "run_id conversation_id job_id reason outcome started_at finished_at tokens_before tokens_after leaf_summaries"
        " condensed_summaries redone_summaries details",
        BELONGS,
    ),
    removal_note=f"{_UNCOUNTED}, but in the `run_id` of its summaries",
)

PLANS = Table(
    name="compaction_plans",
    id="t.plan_id",
    conversation="t.conversation_id",
    columns=row_sealed(
        "plan_id conversation_id created_at last_seq tokens_before tokens_expected context_hash summarizer policy steps"
        " figures requested_at refusal executed_at run_id",
        BELONGS,
    ),
    removal_note=_UNCOUNTED,
)

BOUNDARIES = Table(
    name="compaction_boundaries",
    id="'boundary_' || t.boundary_id",
    conversation="t.conversation_id",
    columns=row_sealed("boundary_id conversation_id host_reference last_seq recorded_at metadata", BELONGS),
    removal_note=f"{_UNCOUNTED}; an exported ledger has them",
)

_QUEUE = "an entry of a queue: workers claim it, renew its lease and close it"

TABLES = (
    RUNS,
    PLANS,
    BOUNDARIES,
    Table(
        name="compaction_jobs",
        id="'job_' || t.job_id",
        conversation="t.conversation_id",
        columns=operational(
            "job_id conversation_id reason state requested_at run_after leased_until finished_at fence attempts"
            " last_error request_id",
            _QUEUE,
        ),
        removal_note=_QUEUE,
    ),
    operational_table(
        "model_endpoints",
        "name consecutive_failures open_until probing_until last_failure last_failure_at last_success_at"
        " window_started_at window_calls window_tokens calls failures tokens_in tokens_out",
        "the state of a circuit breaker and a spending limit, written by every call",
    ),
)
