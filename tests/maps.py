"""Map runs for tests."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

from django.db import transaction
from django.utils import timezone

from conversations.files.large_files import LargeFileService
from conversations.models import Conversation
from retrieval.map.event_log import record_event
from retrieval.map.models import MapItem, MapRun
from tests.factories import a_conversation

SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string"}},
    "required": ["label"],
    "additionalProperties": False,
}


def a_map_run(*, kind: str = "llm", items: int = 3, conversation_id: int | None = None, **columns: Any) -> MapRun:
    """A submitted run over the numbers from 1."""
    if conversation_id is None:
        conversation_id = a_conversation("There is much to label.").conversation_id
    lines = [json.dumps({"n": n}) for n in range(1, items + 1)]
    content = "\n".join(lines).encode()
    stored = LargeFileService.from_settings().store(
        conversation_id=conversation_id, content=content, file_name="numbers.jsonl"
    )
    prompt = columns.pop("prompt", "Label {{item}}.")
    with transaction.atomic():
        run = MapRun.objects.create(
            run_id=f"map_{secrets.token_hex(8)}",
            workspace_id=_workspace_of(conversation_id),
            conversation_id=conversation_id,
            kind=kind,
            input_file_id=stored.file_id,
            prompt=prompt,
            output_schema=SCHEMA,
            concurrency=columns.pop("concurrency", 8),
            max_attempts=columns.pop("max_attempts", 3),
            timeout_s=60,
            retain=columns.pop("retain", "the final word" if kind == "agentic" else ""),
            total=items,
            prompt_hash=_hash(prompt),
            schema_hash=_hash(json.dumps(SCHEMA)),
            input_hash=hashlib.sha256(content).digest(),
            **columns,
        )
        MapItem.objects.bulk_create(
            MapItem(run=run, position=place, input=line, input_hash=_hash(line))
            for place, line in enumerate(lines, start=1)
        )
        record_event(run_id=run.pk, workspace_id=run.workspace_id, event="submitted", actor="test")
    return run


def completed(run: MapRun) -> MapRun:
    """Complete every item of a run, and the run."""
    with transaction.atomic():
        for item in run.items.order_by("position"):
            output = json.dumps({"label": f"label {item.position}"})
            MapItem.objects.filter(pk=item.pk).update(
                state="done", output=output, output_hash=_hash(output), finished_at=timezone.now()
            )
            record_event(
                run_id=run.pk,
                workspace_id=run.workspace_id,
                event="completed",
                actor="test",
                position=item.position,
                input_hash=item.input_hash,
                output_hash=_hash(output),
            )
        MapRun.objects.filter(pk=run.pk).update(state="completed", finished_at=timezone.now())
        record_event(run_id=run.pk, workspace_id=run.workspace_id, event="finished", actor="test")
    return run


def _workspace_of(conversation_id: int) -> int:
    return Conversation.objects.values_list("workspace_id", flat=True).get(pk=conversation_id)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
