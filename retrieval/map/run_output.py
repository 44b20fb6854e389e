"""Finish a map run: store its outputs and failures as files, append one message."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial

import structlog
from django.db import transaction
from django.utils import timezone

from conversations.errors import LcmError
from conversations.files.large_files import LargeFileService, remove_bytes_unless_needed
from conversations.humanize import counted
from conversations.models import LargeFile
from conversations.store.derived_context import lock_conversations
from conversations.store.messages import MessageStore
from conversations.types import NewMessage, Role
from conversations.work.queue import WorkState
from retrieval.map.event_log import record_event
from retrieval.map.input_items import line_of
from retrieval.map.item_queue import OPEN_STATES
from retrieval.map.models import MapItem, MapRun
from retrieval.map.types import MapEventKind, MapState

logger = structlog.get_logger(__name__)

MIME_TYPE = "application/jsonl"
_PAGE = 500


def finish_if_over(run_id: str, *, actor: str) -> None:
    """Finish the run if all of its items have ended.

    One transaction stores the rows of the files, the message, the state and the event, so a crash leaves all of them or
    none. The bytes of the files are stored before it, under their hash.
    """
    run = MapRun.objects.select_related("conversation", "input_file__conversation").get(pk=run_id)
    if not _is_over(run):
        return
    files = LargeFileService.from_settings()
    retries = run.events.filter(event=MapEventKind.RETRIED).count()
    done = run.items.filter(state=WorkState.DONE).count()
    failed = run.items.filter(state=WorkState.FAILED).count()
    output = _bytes_kept(run, WorkState.DONE, _output_line, f"{run_id}-output") if done else None
    failures = _bytes_kept(run, WorkState.FAILED, _failure_line, f"{run_id}-failures") if failed else None
    with transaction.atomic():
        # Before the run's row, as an erasure does.
        lock_conversations([(run.conversation or run.input_file.conversation).pk])
        run = MapRun.objects.select_for_update(no_key=True).get(pk=run_id)
        # Meanwhile it may have been finished or erased, or failed items may have been retried and ended again.
        if not _is_over(run) or run.events.filter(event=MapEventKind.RETRIED).count() != retries:
            for file in filter(None, (output, failures)):
                # An erasure cannot find bytes without a row.
                transaction.on_commit(partial(remove_bytes_unless_needed, files.storage, file.storage_uri))
            return
        run.output_file = files.describe(output) if output else None
        run.failures_file = files.describe(failures) if failures else None
        run.state = MapState.COMPLETED if done else MapState.FAILED
        run.finished_at = timezone.now()
        run.save(update_fields=["output_file", "failures_file", "state", "finished_at"])
        record_event(
            run,
            MapEventKind.FINISHED,
            actor=actor,
            input_hash=bytes(run.input_hash),
            output_hash=bytes(output.content_hash or b"") if output else hashlib.sha256().digest(),
            details={
                "state": run.state.value,
                "done": done,
                "failed": failed,
                "output_file_id": run.output_file_id,
                "failures_file_id": run.failures_file_id,
            },
        )
        if run.conversation_id is not None:
            MessageStore.from_settings().append_messages(
                conversation_id=run.conversation_id,
                messages=[
                    NewMessage(
                        Role.USER,
                        _message(run, done, failed),
                        author="lcm",
                        idempotency_key=f"{run_id}:end:{retries}",
                        metadata={"map_run": run_id},
                    )
                ],
            )


def try_to_finish(run_id: str, *, actor: str) -> None:
    """Finish the run if all of its items have ended; the sweep retries a failure."""
    try:
        finish_if_over(run_id, actor=actor)
    except LcmError as refusal:
        logger.error("map_run_not_finished", run_id=run_id, error=refusal.code)


def _is_over(run: MapRun) -> bool:
    is_open = run.items.filter(state__in=[WorkState.QUEUED, WorkState.LEASED]).exists()
    return run.state in OPEN_STATES and not is_open


def _bytes_kept(run: MapRun, state: WorkState, line: Callable[[MapItem], str], name: str) -> LargeFile:
    """Store a file with the lines of the items in this state; its row is saved later."""
    lines = (f"{line(item)}\n".encode() for item in _in_order(run.pk, state))
    return LargeFileService.from_settings().keep(
        run.conversation or run.input_file.conversation, lines, file_name=f"{name}.jsonl", mime_type=MIME_TYPE
    )


def _in_order(run_id: str, state: WorkState) -> Iterator[MapItem]:
    """Yield the items in the order of the input, reading them in pages."""
    after = 0
    rows = MapItem.objects.filter(run_id=run_id, state=state).order_by("position").defer("input")
    while page := list(rows.filter(position__gt=after)[:_PAGE]):
        yield from page
        after = page[-1].position


def _output_line(item: MapItem) -> str:
    assert item.output is not None, "an item that is done has an output"
    return item.output


def _failure_line(item: MapItem) -> str:
    return line_of({"position": item.position, "error": f"{item.error_kind}: {item.last_error}"})


def _message(run: MapRun, done: int, failed: int) -> str:
    parts = [f"Map run {run.pk} {run.state}: {done:,} of {counted(run.total, 'item')} done, {failed:,} failed."]
    if run.output_file_id:
        parts.append(f"Output: {run.output_file_id} (JSONL, in the order of the input).")
    if run.failures_file_id:
        parts.append(f"Failures: {run.failures_file_id}.")
    return " ".join(parts)
