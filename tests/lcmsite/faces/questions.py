"""What each operation is asked, of the world that there is: as little as it takes, and with its options."""

from __future__ import annotations

from collections.abc import Iterator

from lcmsite.catalogue.operation import Operation, placeholders
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.types import KeyScope
from tests.lcmsite.faces.world import World

READS = [operation for operation in CATALOGUE if operation.scope is KeyScope.READ or operation.verb == "GET"]
WRITES = [operation for operation in CATALOGUE if operation.scope is not KeyScope.READ]

# What an operation is asked about instead of what its params are called after.
OF_A_MAP = {"run_id": "map_run_id"}
INSTEAD = {
    "lcm_undo_repairs": {"repair_id": "applied"},
    "lcm_expand_session": {"summary_id": "session_summary_id"},
    "lcm_redo_session": {"summary_id": "session_summary_id"},
    "lcm_fork": {"session_id": "fork_session_id"},
    "lcm_history_job": {"job_id": "history_job_id"},
    "lcm_read_quarantined": {"id": "quarantined_id"},
    **{
        f"lcm_map_{name}": OF_A_MAP
        for name in ("status", "items", "output", "pause", "resume", "cancel", "retry_failed", "record", "claim")
    },
}
# What has to be said beyond the required params, since a service demands one of several.
DEMANDED = {
    "lcm_fork": ("at_seq",),
    "lcm_map_submit": ("kind", "retain", "input_file_id"),
    "lcm_map_complete": ("output",),
}

# What is said beyond what has to be said, so that options are asked through every face, too.
OPTIONS = {
    "lcm_schema": {"level": 1, "full": True},
    "lcm_list": {"limit": 5},
    "lcm_messages": {"after_seq": 38, "limit": 3},
    "lcm_runs": {"limit": 1, "outcome": "compacted", "reason": "manual"},
    "lcm_activity": {"hours": 2},
    "lcm_jobs": {"state": "queued", "limit": 1},
    "lcm_history_jobs": {"state": "queued", "project": "harbour", "limit": 1},
    "lcm_plans": {"limit": 1},
    "lcm_boundaries": {"limit": 1},
    "lcm_branches": {"limit": 1},
    "lcm_append_journal": {"subpath": "subagents/agent-1"},
    "lcm_journal": {"subpath": "subagents/agent-1", "limit": 1},
    "lcm_journal_subpaths": {"limit": 1},
    "lcm_coverage": {"host_reference": "compaction 1 · é", "idempotency_keys": ["call 1"]},
    "lcm_assemble": {
        "budget": 2000,
        "query": "boats",
        "format": "anthropic",
        "reserve": 100,
        "as_of": "42",
        "keep_receipt": True,
    },
    "lcm_recall": {"budget": 8000, "share": 0.5, "project": "harbour", "query": "boats"},
    "lcm_projects": {"limit": 1},
    "lcm_timeline": {"project": "harbour", "kind": "session", "limit": 1},
    "lcm_expand_session": {"depth": -1, "include_messages": True, "token_cap": 500},
    "lcm_session_ago": {"sessions_ago": 1},
    "lcm_grep_sessions": {"project": "harbour", "kind": "session", "limit": 1},
    "lcm_message": {"whole": True},
    "lcm_read_file": {"offset": 2, "length": 3},
    "lcm_read_lines": {"first_line": 2, "line_count": 1},
    "lcm_uploads": {"limit": 1},
    "lcm_files": {"limit": 1},
    "lcm_receipts": {"limit": 1},
    "lcm_grep": {
        "mode": "regex",
        "scope": "all",
        "limit": 3,
        "since": "2020-01-01",
        "until": "2100-01-01T00:00:00+02:00",
        "roles": ["user", "assistant"],
        "part_types": ["text"],
        "from_seq": 2,
        "to_seq": 30,
        "sort": "recency",
        "max_tokens": 500,
    },
    "lcm_about": {"aspect": "boats", "question": "Which boats?", "max_tokens": 300},
    "lcm_expand": {"depth": -1, "include_messages": True, "token_cap": 500, "keep_ends": True},
    "lcm_expand_range": {"depth": -1, "include_messages": True, "token_cap": 500, "keep_ends": True},
    "lcm_expand_query": {"query": "harbour", "depth": 2, "token_cap": 300},
    "lcm_impact": {"limit": 1, "direction": "downstream", "max_depth": 2, "min_confidence": 0.3},
    "lcm_grants": {"limit": 1},
    "lcm_set_retention": {"cold_after_days": 90},
    "lcm_preview_erasure": {"from_seq": 2, "to_seq": 4, "message_ids": [], "file_ids": []},
    "lcm_check": {"extent": "full", "with_plan": False},
    "lcm_reports": {"extent": "full", "whole": True, "limit": 1},
    "lcm_repair_plans": {"state": "approved", "limit": 1},
    "lcm_report": {"code": "counters_are_recounts", "limit": 1},
    "lcm_map_runs": {"state": "running", "limit": 1},
    "lcm_map_items": {"state": "failed", "after_position": 0, "limit": 1},
    "lcm_map_output": {"limit": 1},
    "lcm_map_record": {"after_seq": 1, "limit": 2},
    "lcm_quarantines": {"released": True, "limit": 5},
    "lcm_audit": {"act": "quarantine", "target": "msg_2", "limit": 5},
}

# What is asked about a message, too, and not only about a summary.
OF_MESSAGES = {"lcm_describe": {"token_cap": 5}, "lcm_impact": {}}


def questions(operation: Operation, world: World) -> Iterator[World]:
    """The params of the shortest question, and those of a fuller one."""
    fields = operation.params.model_fields
    world = world | {name: world[other] for name, other in INSTEAD.get(operation.tool, {}).items()}
    short = {
        name: world[name]
        for name, field in fields.items()
        if field.is_required() or name in (*placeholders(operation.path), *DEMANDED.get(operation.tool, ()))
    }
    yield short
    if operation.tool in OPTIONS:
        yield short | OPTIONS[operation.tool]
    if operation.tool in OF_MESSAGES:
        yield short | {"id": f"msg_{world['message_id']}"} | OF_MESSAGES[operation.tool]
    if operation.everywhere:
        yield {name: value for name, value in short.items() if fields[name].is_required()}
