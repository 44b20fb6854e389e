"""Let external agents claim the items of agentic map runs and send their outputs.

An agent claims items, renews their leases, and completes or releases each item. These calls pass the fence of the
claim. If another agent has claimed the item since, the fence is outdated and the call is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from conversations.content.lossless_values import is_deeper
from conversations.errors import Conflict, Invalid, NotFound, param_error
from conversations.scope import Scoped
from conversations.work.queue import LeaseLost, WorkState
from retrieval.delegation.grants import Grants
from retrieval.delegation.types import GrantRecord
from retrieval.map.input_items import MOST_ITEM_LEVELS, line_of
from retrieval.map.item_prompt import MOST_ANSWER_CHARACTERS, PLACE, refusal_of
from retrieval.map.item_queue import OPEN_STATES, ItemLease, claim_of_run, lease_of
from retrieval.map.models import MapItem, MapRun
from retrieval.map.output_schema import SchemaCheck
from retrieval.map.run_output import try_to_finish
from retrieval.map.types import ItemErrorKind, MapEventKind, MapKind, MapState

# The maximum number of characters of an agent's error that are stored.
MOST_ERROR_CHARACTERS = 2_000

_READ_ONLY = (
    "Read only: change nothing outside LCM while you work on these items. LCM cannot enforce this where you run: it is "
    "a term of the delegation, and the record of the run names it."
)
_FREE = "You may change what your own tools allow."


@dataclass(frozen=True)
class ClaimTerms:
    """The terms on which an agent works on items of a run.

    `grant` lets the agent read more than its items, by `lcm_expand_query` with the `grant_id`; without a grant, it may
    read only its items. `read_only` forbids it to change anything outside LCM. LCM cannot enforce this; the agent must
    follow it.
    """

    read_only: bool
    retain: str
    delegated_scope: str
    kept_work: str
    grant: GrantRecord | None
    note: str


@dataclass(frozen=True)
class ClaimedItem:
    """An item that is leased to one agent.

    Every call about the item must pass its `fence`. `prompt` is the run's prompt with the item filled in.
    `validation_errors` quotes the last refused output and its errors.
    """

    item_id: int
    position: int
    fence: int
    leased_until: datetime
    prompt: str
    input: str
    refused_answers: int
    validation_errors: str


@dataclass(frozen=True)
class ClaimedItems:
    """Claimed items of a run, their terms, and the schema of each output.

    `open_items` counts the items of the run that are not finished. If items are open but none was claimed, they are
    leased to others, or the run is paused: claim again later.
    """

    run_id: str
    worker: str
    items: tuple[ClaimedItem, ...]
    open_items: int
    output_schema: Mapping[str, Any]
    max_attempts: int
    terms: ClaimTerms


@dataclass(frozen=True)
class HeldItem:
    """The lease of a claimed item after a heartbeat."""

    item_id: int
    run_id: str
    position: int
    fence: int
    leased_until: datetime


@dataclass(frozen=True)
class ItemOutcome:
    """The state of an item after it was completed or released.

    `state` is `done`, `failed` after the last attempt, or `queued` for another attempt by any agent. `repeated`: the
    same output was already recorded.
    """

    item_id: int
    run_id: str
    position: int
    state: WorkState
    attempts_left: int
    repeated: bool = False


@dataclass(frozen=True)
class AgenticClaims(Scoped):
    """The interface for external agents to the items of agentic map runs."""

    def claim(self, *, run_id: str, worker: str, count: int = 1, lease_s: int = 300) -> ClaimedItems:
        """Claim items of an agentic map run for a while, with the terms of the work.

        It returns fewer items than `count` if more would exceed the run's concurrency, or 8 MiB with their prompts (one
        item may be larger). It returns no items while the run is paused; a run is paused while its input file is
        quarantined. Each item has a `fence`: pass it to `heartbeat`, `complete` and `release`.
        Raises NotFound; Invalid if a language model processes the run; Conflict `map_run_ended`; GrantExpired,
        GrantRevoked or GrantExceeded if the run's grant is no longer active.
        """
        run = self._run(run_id)
        if run.kind != MapKind.AGENTIC:
            raise Invalid(f"A language model processes run {run_id}; agents can claim items of agentic runs only.")
        grant = self._grant(run)
        with transaction.atomic():
            run = MapRun.objects.select_for_update(no_key=True).get(pk=run.pk)
            if run.state not in (*OPEN_STATES, MapState.PAUSED):
                raise Conflict(f"Run {run_id} is {run.state}; its items cannot be claimed.", code="map_run_ended")
            leases = claim_of_run(run_id=run.pk, worker=worker, count=count, lease_seconds=lease_s)
            for lease in leases:
                lease.record(MapEventKind.CLAIMED, self.scope.actor, details={"worker": worker, "fence": lease.fence})
            open_items = run.items.filter(state__in=[WorkState.QUEUED, WorkState.LEASED]).count()
        # An item whose agents died repeatedly gets the state `failed`. If it was the last open item, the run has ended.
        try_to_finish(run.pk, actor=self.scope.actor)
        return ClaimedItems(
            run_id=run.pk,
            worker=worker,
            items=tuple(_claimed(lease.row, run) for lease in leases),
            open_items=open_items,
            output_schema=run.output_schema,
            max_attempts=run.max_attempts,
            terms=ClaimTerms(
                read_only=run.read_only,
                retain=run.retain,
                delegated_scope=run.delegated_scope,
                kept_work=run.kept_work,
                grant=grant,
                note=_READ_ONLY if run.read_only else _FREE,
            ),
        )

    def heartbeat(self, *, item_id: int, fence: int, lease_s: int = 300) -> HeldItem:
        """Extend the lease of a claimed item.

        Raises LeaseLost if another agent has claimed the item: drop it then, as no output for it will be accepted.
        """
        lease = self._lease(item_id, fence, seconds=lease_s)
        lease.renew()
        item = lease.row
        item.refresh_from_db(fields=["leased_until"])
        assert item.leased_until is not None, "a lease that was renewed has an end"
        return HeldItem(
            item_id=item.pk, run_id=item.run_id, position=item.position, fence=fence, leased_until=item.leased_until
        )

    def complete(self, *, item_id: int, fence: int, output: Any = None, error: str | None = None) -> ItemOutcome:
        """Complete a claimed item: with its output, or the error that prevented one.

        An output must match the run's schema. Otherwise it fails with `output_invalid`, and counts as an attempt, as an
        error does. Until the last attempt the item can be completed again, with the same fence or by the next agent. A
        repeated completion changes nothing. Raises NotFound; LeaseLost if the lease is over; Conflict `item_completed`
        if another output was accepted.
        """
        if error is not None and output is not None:
            raise Invalid("Give either output or error, not both.", code="invalid_params")
        lease = self._lease(item_id, fence, may_be_done=True)
        item, run = lease.row, lease.row.run
        if item.state == WorkState.DONE:
            return _repeated(item, None if error is not None else self._line(output))
        errors = [error[:MOST_ERROR_CHARACTERS]] if error is not None else self._errors(run, output)
        if not errors:
            line = self._line(output)
            lease.complete(line, actor=self.scope.actor)
            try_to_finish(run.pk, actor=self.scope.actor)
            return _outcome(item, WorkState.DONE, item.refused_answers)
        refused = item.refused_answers + 1
        state = WorkState.FAILED if refused >= run.max_attempts else WorkState.QUEUED
        if error is not None:
            self._give_back(lease, errors[0], is_last=state is WorkState.FAILED)
        else:
            refusal = refusal_of(self._line(output), errors)
            lease.refuse(errors, refusal, actor=self.scope.actor)
        try_to_finish(run.pk, actor=self.scope.actor)
        outcome = _outcome(item, state, refused)
        if error is None:
            raise Invalid(
                f"The output does not match the run's schema: {' '.join(errors)[:500].rstrip('.')}. "
                + (f"Attempts left: {outcome.attempts_left}." if outcome.attempts_left else "The item has failed."),
                code="output_invalid",
                errors={"output": errors},
                state=state.value,
                attempts_left=outcome.attempts_left,
            )
        return outcome

    def release(self, *, item_id: int, fence: int) -> ItemOutcome:
        """Give a claimed item back unprocessed: any agent may claim it at once.

        This does not count as an attempt. Raises NotFound; LeaseLost if the lease is over.
        """
        lease = self._lease(item_id, fence)
        with lease.recording():
            lease.return_unused()
            lease.record(MapEventKind.RELEASED, self.scope.actor, details={"reason": "agent", "fence": fence})
        return _outcome(lease.row, WorkState.QUEUED, lease.row.refused_answers)

    def _run(self, run_id: str) -> MapRun:
        return self.scope.find(MapRun.objects.all(), "map run", run_id, run_id=run_id)

    def _grant(self, run: MapRun) -> GrantRecord | None:
        """The grant of the run, if it has one; raises the refusal of an inactive grant."""
        return Grants.from_settings(self.scope).usable(grant_id=run.grant_id) if run.grant_id else None

    def _lease(self, item_id: int, fence: int, *, seconds: float = 0.0, may_be_done: bool = False) -> ItemLease:
        """Find the lease with this fence; raises NotFound, and LeaseLost if it is over."""
        items = self.scope.narrow(MapItem.objects.select_related("run")).filter(run__kind=MapKind.AGENTIC)
        item = items.filter(pk=item_id).first()
        if item is None:
            raise NotFound(f"There is no map item {item_id} that you may see.")
        is_held = item.state == WorkState.LEASED or (may_be_done and item.state == WorkState.DONE)
        if item.fence != fence or not is_held:
            raise LeaseLost(
                f"Map item {item_id} is not yours any more: it is {item.state}, with another fence or at rest. Drop it."
            )
        return lease_of(item, seconds)

    def _errors(self, run: MapRun, output: Any) -> list[str]:
        if is_deeper(output, MOST_ITEM_LEVELS):
            return [f"$: the output is more than {MOST_ITEM_LEVELS} levels deep"]
        if len(self._line(output)) > MOST_ANSWER_CHARACTERS:
            return [f"$: the output has more than {MOST_ANSWER_CHARACTERS:,} characters"]
        return SchemaCheck(run.output_schema).errors(output)

    def _line(self, output: Any) -> str:
        try:
            return line_of(output)
        except (TypeError, ValueError, RecursionError):
            raise param_error("output", "This must be a JSON value.") from None

    def _give_back(self, lease: ItemLease, error: str, *, is_last: bool) -> None:
        """Record an agent's error; requeue the item, or fail it after the last attempt."""
        refused = lease.row.refused_answers + 1
        if is_last:
            lease.give_up(ItemErrorKind.AGENT, error, actor=self.scope.actor, refused_answers=refused)
            return
        with lease.recording():
            lease.renew(refused_answers=refused, error_kind=ItemErrorKind.AGENT)
            lease.release(error=error)
            details = {"reason": "error", "refused_answers": refused}
            lease.record(MapEventKind.RELEASED, self.scope.actor, details=details)


def _claimed(item: MapItem, run: MapRun) -> ClaimedItem:
    assert item.leased_until is not None, "a claimed item has a lease"
    return ClaimedItem(
        item_id=item.pk,
        position=item.position,
        fence=item.fence,
        leased_until=item.leased_until,
        prompt=run.prompt.replace(PLACE, item.input),
        input=item.input,
        refused_answers=item.refused_answers,
        validation_errors=item.validation_errors,
    )


def _repeated(item: MapItem, line: str | None) -> ItemOutcome:
    """The outcome of a repeated completion; raises Conflict for another output."""
    if line is None or hashlib.sha256(line.encode()).digest() != bytes(item.output_hash or b""):
        raise Conflict(f"Map item {item.pk} was completed with another answer.", code="item_completed")
    return _outcome(item, WorkState.DONE, item.refused_answers, repeated=True)


def _outcome(item: MapItem, state: WorkState, refused: int, *, repeated: bool = False) -> ItemOutcome:
    return ItemOutcome(
        item_id=item.pk,
        run_id=item.run_id,
        position=item.position,
        state=state,
        attempts_left=max(0, item.run.max_attempts - refused) if state is WorkState.QUEUED else 0,
        repeated=repeated,
    )
