"""Submit, show, pause, resume and cancel map runs: one prompt for many items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from conversations import sql
from conversations.errors import Conflict, Invalid
from conversations.models.columns import record_of
from conversations.scope import Scoped
from conversations.store.pages import MOST_PAGE_BYTES, Page, newest_first
from conversations.store.withheld import is_quarantined
from conversations.work.queue import WorkState
from retrieval.map.event_log import record_event
from retrieval.map.item_call import chosen_model
from retrieval.map.item_queue import OPEN_STATES, STATEMENTS, pause_run, resume_run, wake_workers
from retrieval.map.models import MapItem, MapRun
from retrieval.map.submission import MOST_BUDGET_TOKENS, MapSubmission
from retrieval.map.types import (
    ItemErrorKind,
    MapEventKind,
    MapItemRecord,
    MapKind,
    MapOutput,
    MapRunRecord,
    MapState,
    PauseReason,
)

_ENDED = (MapState.COMPLETED, MapState.FAILED, MapState.CANCELLED)


@dataclass(frozen=True)
class MapOperator(Scoped):
    """Submits, shows and controls the map runs of one workspace."""

    def submit(
        self,
        *,
        prompt: str,
        output_schema: Mapping[str, Any],
        kind: MapKind = MapKind.LLM,
        input_file_id: str | None = None,
        items: Sequence[Any] | None = None,
        conversation_id: int | None = None,
        model: str = "",
        concurrency: int = 8,
        max_attempts: int = 3,
        temperature: float | None = None,
        timeout_s: int = 60,
        budget_tokens: int | None = None,
        retain: str = "",
        delegated_scope: str = "",
        kept_work: str = "",
        grant_id: str | None = None,
        read_only: bool = True,
        idempotency_key: str | None = None,
        parent_run_id: str | None = None,
    ) -> MapRunRecord:
        """Process many items with one prompt, by a language model or by outside agents.

        In the prompt, {{item}} is replaced by the JSON of an item. Each output is one JSON value that matches
        `output_schema` (Draft 2020-12, without external references). An output that does not match is refused with its
        errors, up to `max_attempts` times. Everything is checked before anything is stored; then the run continues in
        the background. At the end, the outputs are written to one file, in the order of the input, and the failures to
        another. The conversation gets one short message with the ids of these files, never the outputs.
        A repeated idempotency key returns the same run. An agentic run must state what the caller stays responsible for
        (`retain`); with a grant, also what it delegates (`delegated_scope`) and what it keeps (`kept_work`).
        `read_only` is an instruction to the agents; LCM cannot enforce it.
        Raises Invalid; Invalid `no_model`, `no_retention` or `no_scope_reduction`; NotFound; TooLarge; Unavailable;
        Conflict if the idempotency key belongs to a run with other params.
        """
        run = MapRun(
            kind=kind, prompt=prompt, output_schema=output_schema, conversation_id=conversation_id,
            model=chosen_model(model) if kind is MapKind.LLM else "",
            concurrency=concurrency, max_attempts=max_attempts, temperature=temperature, timeout_s=timeout_s,
            budget_tokens=budget_tokens, retain=retain, delegated_scope=delegated_scope, kept_work=kept_work,
            grant_id=grant_id, read_only=read_only, idempotency_key=idempotency_key, parent_run_id=parent_run_id,
        )  # fmt: skip
        submitted = MapSubmission(self.scope).submit(run, items=items, input_file_id=input_file_id)
        return self.get_run(run_id=submitted.pk)

    def get_run(self, *, run_id: str) -> MapRunRecord:
        """Get a map run with its progress. Raises NotFound."""
        [record] = self._records([self._found(run_id)])
        return record

    def list_runs(
        self,
        *,
        conversation_id: int | None = None,
        state: MapState | str | None = None,
        before_run: str | None = None,
        limit: int = 50,
    ) -> list[MapRunRecord]:
        """List map runs, newest first. Filter by conversation and state.

        Raises NotFound for an unknown conversation.
        """
        runs = self.scope.filter_rows(MapRun.objects.all(), conversation_id=conversation_id, state=state)
        return self._records(list(newest_first(runs, before_run, self._found)[:limit]))

    def list_items(
        self, *, run_id: str, state: WorkState | str | None = None, after_position: int = 0, limit: int = 100
    ) -> list[MapItemRecord]:
        """List the items of a map run in the order of the input. Filter by state.

        A page of large items may end before `limit`. While the input file is quarantined, items are listed without
        their texts. Raises NotFound.
        """
        return self._items(self._found(run_id), state=state, after_position=after_position, limit=limit)

    def output(self, *, run_id: str, after_position: int = 0, limit: int = 100) -> MapOutput:
        """Read a page of a map run's outputs so far, and the ids of its result files.

        Outputs are in input order. While the input file is quarantined, they have no texts. Raises NotFound.
        """
        run = self._found(run_id)
        found = self._items(run, state=WorkState.DONE, after_position=after_position, limit=limit + 1)
        shown = found[:limit]
        return MapOutput(
            run_id=run_id,
            output_file_id=run.output_file_id,
            failures_file_id=run.failures_file_id,
            items=tuple(shown),
            next_position=shown[-1].position if found.more or len(found) > limit else None,
        )

    @transaction.atomic
    def pause(self, *, run_id: str) -> MapRunRecord:
        """Pause a map run: items in progress end normally, and no others begin."""
        run = self._held(run_id)
        if run.state in OPEN_STATES:
            pause_run(run, PauseReason.PERSON, actor=self.scope.actor)
        elif run.state == MapState.PAUSED:
            # The pause by a person replaces a pause because of the model, which the sweep would end automatically.
            MapRun.objects.filter(pk=run.pk).update(pause_reason=PauseReason.PERSON)
        else:
            raise _is_over(run)
        return self.get_run(run_id=run_id)

    @transaction.atomic
    def resume(self, *, run_id: str, budget_tokens: int | None = None) -> MapRunRecord:
        """Resume a paused map run, with another token budget if one is given.

        Raises Conflict `run_is_over`, `budget_spent`, or `quarantined` if its input file is quarantined.
        """
        run = self._held(run_id)
        if run.state in _ENDED:
            raise _is_over(run)
        if is_quarantined(run.input_file_id):
            raise Conflict(
                f"The input file {run.input_file_id} of {run_id} is quarantined: release the file, then resume it.",
                code="quarantined",
            )
        if budget_tokens is not None:
            if budget_tokens > MOST_BUDGET_TOKENS:
                raise Invalid("budget_tokens must be from 1 to 2**60.")
            run.budget_tokens = budget_tokens
            MapRun.objects.filter(pk=run.pk).update(budget_tokens=budget_tokens)
        spent = run.spent_in + run.spent_out
        if run.budget_tokens is not None and spent >= run.budget_tokens:
            raise Conflict(
                f"The run has spent {spent:,} of its {run.budget_tokens:,} tokens; give a larger budget_tokens.",
                code="budget_spent",
            )
        resume_run(run_id, actor=self.scope.actor)
        return self.get_run(run_id=run_id)

    @transaction.atomic
    def cancel(self, *, run_id: str) -> MapRunRecord:
        """End a map run for good: open items are not processed, late outputs refused.

        Finished outputs stay readable; no file is written. Raises Conflict `run_is_over` if it completed or failed.
        """
        run = self._held(run_id)
        if run.state in (MapState.COMPLETED, MapState.FAILED):
            raise _is_over(run)
        if run.state != MapState.CANCELLED:
            sql.execute(STATEMENTS["end_open_items"], {"run_id": run_id})
            MapRun.objects.filter(pk=run_id).update(
                state=MapState.CANCELLED, pause_reason=PauseReason.NONE, finished_at=Now()
            )
            record_event(run, MapEventKind.CANCELLED, actor=self.scope.actor)
        return self.get_run(run_id=run_id)

    @transaction.atomic
    def retry_failed(self, *, run_id: str) -> MapRunRecord:
        """Queue the failed items of a map run again, with all their attempts.

        A run that has ended continues, and writes its result files again. Raises NotFound; Conflict `run_is_over` if
        the run was cancelled; Conflict `nothing_failed` if no item has failed.
        """
        run = self._held(run_id)
        if run.state == MapState.CANCELLED:
            raise _is_over(run)
        requeued = sql.execute(STATEMENTS["requeue_failed_items"], {"run_id": run_id})
        if not requeued:
            raise Conflict(f"No item of {run_id} has failed, so there is nothing to retry.", code="nothing_failed")
        if run.state in _ENDED:
            MapRun.objects.filter(pk=run_id).update(state=MapState.RUNNING, finished_at=None)
        record_event(run, MapEventKind.RETRIED, actor=self.scope.actor, details={"items": requeued})
        if run.kind == MapKind.LLM:
            wake_workers()
        return self.get_run(run_id=run_id)

    def _items(
        self, run: MapRun, *, state: WorkState | str | None, after_position: int, limit: int
    ) -> Page[MapItemRecord]:
        page = {
            "run_id": run.pk,
            "after_position": after_position,
            "state": None if state is None else str(state),
            "limit": limit,
            "most_bytes": MOST_PAGE_BYTES,
        }
        found: list[Any] = list(MapItem.objects.raw(STATEMENTS["items_of_page"], page))
        items = map(_item_record, found)
        shown = map(_without_texts, items) if is_quarantined(run.input_file_id) else items
        return Page(shown, more=bool(found) and len(found) < found[0].there)

    def _found(self, run_id: str) -> MapRun:
        return self.scope.find(MapRun.objects.all(), "map run", run_id, run_id=run_id)

    def _held(self, run_id: str) -> MapRun:
        """Find the run, and lock its row until the transaction ends."""
        held = MapRun.objects.select_for_update(no_key=True)
        return self.scope.find(held, "map run", run_id, run_id=run_id)

    def _records(self, runs: Sequence[MapRun]) -> list[MapRunRecord]:
        """Build the records of runs; one statement reads the counts of all of them."""
        values = {"run_ids": sql.texts(run.pk for run in runs)}
        counts = {run_id: counted for run_id, *counted in sql.rows(STATEMENTS["counts_of_runs"], values)}
        records = []
        for run in runs:
            done, failed, leased = counts.get(run.pk, (0, 0, 0))
            records.append(
                record_of(
                    MapRunRecord,
                    run,
                    kind=MapKind(run.kind),
                    state=MapState(run.state),
                    pause_reason=PauseReason(run.pause_reason),
                    done=done,
                    failed=failed,
                    leased=leased,
                    queued=run.total - done - failed - leased,
                )
            )
        return records


def _item_record(row: MapItem) -> MapItemRecord:
    kind = None if row.error_kind is None else ItemErrorKind(row.error_kind)
    return record_of(MapItemRecord, row, state=WorkState(row.state), error_kind=kind, quarantined=False)


def _without_texts(item: MapItemRecord) -> MapItemRecord:
    """Copy an item without its texts: the input, and output and errors that quote it."""
    return replace(item, input="", output=None, last_error="", validation_errors="", quarantined=True)


def _is_over(run: MapRun) -> Conflict:
    return Conflict(f"The run {run.pk} has ended ({run.state}); submit another one.", code="run_is_over")
