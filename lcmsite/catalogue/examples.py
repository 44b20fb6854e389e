"""One example of every param, by its name, and of every refusal: those that the OpenAPI document shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # These examples are for whoever has no Django at hand, too.
    from lcmsite.catalogue.operation import Operation

EXAMPLES: Mapping[str, Any] = {
    "Range": "bytes=0-1023",
    "whole": True,
    "with_messages": True,
    "with_plan": True,
    "scan_id": 1,
    "report_id": "report_9f86d081884c7d65",
    "repair_id": "repair_9f86d081884c7d65",
    "released": False,
    "refused": [2],
    "reason": "It was altered.",
    "quarantine_id": 1,
    "ordinals": [1],
    "ledger_file_id": "file_9f86d081884c7d65",
    "extent": "full",
    "code": "contents_match_their_hashes",
    "upload_id": "upload_9f86d081884c7d65",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "line_count": 100,
    "first_line": 1,
    "byte_size": 1048576,
    "act": "archive",
    "after_seq": 0,
    "as_of": "2026-01-31T12:00:00Z",
    "as_of_run": "run_9f86d081884c7d65",
    "background": False,
    "budget": 100000,
    "cold": False,
    "cold_after_days": 90,
    "confirmation": "erase 3 messages of conversation 1 for good",
    "content": "YSxiCjEsMgo=",
    "conversation_id": 1,
    "conversation_ids": [1],
    "cursor": "eyJ2IjoxfQ",
    "depth": 1,
    "erasure_id": "era_9f86d081884c7d65",
    "file_id": "file_9f86d081884c7d65",
    "file_ids": ["file_9f86d081884c7d65"],
    "file_name": "boats.csv",
    "format": "openai",
    "from_seq": 1,
    "grant_id": "grant_9f86d081884c7d65",
    "host_reference": "compaction 1",
    "hours": 24,
    "id": "sum_9f86d081884c7d65",
    "idempotency_keys": ["turn-17"],
    "ids": ["sum_9f86d081884c7d65"],
    "include_messages": True,
    "job_id": 1,
    "keep_ends": True,
    "keep_receipt": True,
    "last_seq": 1,
    "length": 1024,
    "limit": 10,
    "max_tokens": 2000,
    "message_id": "msg_1",
    "message_ids": ["msg_1"],
    "messages": [{"role": "user", "content": "Which port did we settle on?", "name": "Ada"}],
    "metadata": {"project": "harbour"},
    "mime_type": "text/csv",
    "mode": "full_text",
    "name": "chat",
    "offset": 0,
    "only_messages": True,
    "outcome": "compacted",
    "other": "rcp_9f86d081884c7d65",
    "overrides": {"fresh_tail_count": 12},
    "part_types": ["text", "tool"],
    "plan_id": "plan_9f86d081884c7d65",
    "query": "harbour boats",
    "question": "Which port did we settle on?",
    "receipt_id": "rcp_60303ae22b998861",
    "reserve": 8000,
    "resolution": 400,
    "roles": ["user", "assistant"],
    "run_id": "run_9f86d081884c7d65",
    "scope": "both",
    "session_id": "trip to Rome",
    "share": 0.15,
    "since": "2026-01-31T09:00:00Z",
    "sort": "relevance",
    "state": "failed",
    "summary_id": "sum_9f86d081884c7d65",
    "target": "msg_1",
    "title": "To Rome",
    "to_seq": 20,
    "token_cap": 4000,
    "tool_names": ["read_file"],
    "under": "sum_9f86d081884c7d65",
    "until": "2026-02-01T00:00:00Z",
}

# What a name means in one operation alone, by its tool.
_OF_ONE: Mapping[str, Mapping[str, Any]] = {
    "lcm_browse": {"sort": "updated"},
    "lcm_repair_plans": {"state": "proposed"},
    "lcm_runs": {"reason": "threshold"},
}

# Those that stand for others than they were made for in the same body: said without them, it is a request that works.
_LEFT_OUT: Mapping[str, Sequence[str]] = {"lcm_expand_query": ("query", "grant_id", "conversation_id")}

PROBLEM_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "400": {
        "code": "invalid_params",
        "detail": "limit: This must be 1 at least.",
        "retryable": False,
        "status": 400,
        "errors": {"limit": ["This must be 1 at least."]},
    },
    "401": {"code": "unauthenticated", "detail": "This is not a valid API key.", "retryable": False, "status": 401},
    "403": {
        "code": "forbidden",
        "detail": "This needs a key with the scope write.",
        "retryable": False,
        "status": 403,
    },
    "404": {
        "code": "not_found",
        "detail": "There is no conversation 7 that you may see.",
        "retryable": False,
        "status": 404,
    },
    "409": {
        "code": "contention",
        "detail": "Another writer was at work on the same rows; nothing was changed.",
        "retryable": True,
        "status": 409,
    },
    "411": {
        "code": "length_required",
        "detail": "The request must say in Content-Length how long its body is.",
        "retryable": False,
        "status": 411,
    },
    "413": {
        "code": "request_too_large",
        "detail": "The request body is larger than LCM_MAX_REQUEST_BYTES allows.",
        "retryable": False,
        "status": 413,
    },
    "415": {
        "code": "unsupported_media_type",
        "detail": "The body must be JSON, sent as Content-Type: application/json.",
        "retryable": False,
        "status": 415,
    },
    "429": {
        "code": "rate_limited",
        "detail": "This key may make 600 requests a minute; go on in 1 s.",
        "retryable": True,
        "status": 429,
        "context": {"retry_after": 1},
    },
    "503": {"code": "unavailable", "detail": "The database does not answer.", "retryable": True, "status": 503},
}


def examples_of(operation: Operation) -> dict[str, Any]:
    """An example of each param of the operation, by its name."""
    known = {**EXAMPLES, **_OF_ONE.get(operation.tool, {})}
    return {name: known[name] for name in operation.params.model_fields if name in known}


def example_body(operation: Operation, *, without: Sequence[str]) -> dict[str, Any]:
    """A body that shows what can be said, and could be sent as it is."""
    left_out = (*without, *_LEFT_OUT.get(operation.tool, ()))
    return {name: value for name, value in examples_of(operation).items() if name not in left_out}
