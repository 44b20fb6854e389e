"""Create map runs for tests."""

from __future__ import annotations

import json
from typing import Any

from conversations.files.large_files import LargeFileService
from conversations.scope import Scope
from retrieval.map.item_queue import claim_of_run
from retrieval.map.models import MapRun
from retrieval.map.run_output import finish_if_over
from retrieval.map.submission import MapSubmission
from retrieval.map.types import MapState
from tests.factories import a_conversation

SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string"}},
    "required": ["label"],
    "additionalProperties": False,
}


def a_map_run(
    *,
    kind: str = "llm",
    items: int = 3,
    input_file_id: str | None = None,
    conversation_id: int | None = None,
    **terms: Any,
) -> MapRun:
    """A submitted map run over the numbers from 1, or over a file."""
    given = {
        "prompt": "Label {{item}}.",
        "model": "chat" if kind == "llm" else "",
        "retain": "the final word" if kind == "agentic" else "",
        "concurrency": 8,
        "max_attempts": 3,
        "timeout_s": 60,
        **terms,
    }
    run = MapRun(
        kind=kind,
        output_schema=SCHEMA,
        conversation_id=conversation_id or a_conversation("There is much to label.").conversation_id,
        **given,
    )
    numbers = None if input_file_id else [{"n": n} for n in range(1, items + 1)]
    return MapSubmission(Scope(None, actor="test")).submit(run, items=numbers, input_file_id=input_file_id)


def completed(run: MapRun) -> MapRun:
    """Complete every item of a map run, and with them the run."""
    while leases := claim_of_run(run_id=run.pk, worker="test", count=8, lease_seconds=30):
        for lease in leases:
            lease.complete(json.dumps({"label": f"label {lease.row.position}"}), actor="test")
    finish_if_over(run.pk, actor="test")
    run.refresh_from_db()
    assert run.state == MapState.COMPLETED
    return run


def lines_of(file_id: str) -> list[Any]:
    return [json.loads(line) for line in LargeFileService.from_settings().read(file_id=file_id).splitlines()]
