"""The tables of map runs: runs, their items, and the record of their events."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from conversations.models import Conversation, LargeFile, Workspace
from conversations.models.columns import ExactJSONField, JSONTextField
from conversations.work.queue import WorkState
from retrieval.map.types import ItemErrorKind, MapEventKind, MapKind, MapState, PauseReason

# Matches a text with a character other than white space.
_NOT_BLANK = r"[^ \t\r\n]"


class MapRun(models.Model):
    """One bulk operation: a prompt and a schema for all items of a file."""

    run_id = models.TextField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.RESTRICT, related_name="map_runs")
    # The conversation that gets one message at the end, and the files of the run. If it is NULL, there is no message,
    # and the conversation of the input file gets the files.
    conversation = models.ForeignKey(Conversation, models.RESTRICT, null=True, related_name="map_runs")
    kind = models.TextField(choices=[(kind.value, kind.value) for kind in MapKind])
    state = models.TextField(choices=[(state.value, state.value) for state in MapState], default=MapState.QUEUED)
    pause_reason = models.TextField(
        choices=[(reason.value, reason.value) for reason in PauseReason], default="", db_default=""
    )
    input_file = models.ForeignKey(LargeFile, models.RESTRICT, related_name="+")
    output_file = models.ForeignKey(LargeFile, models.RESTRICT, null=True, related_name="+")
    failures_file = models.ForeignKey(LargeFile, models.RESTRICT, null=True, related_name="+")
    prompt = models.TextField()
    output_schema = JSONTextField()
    # The name of the model endpoint, such as `chat`; empty for agentic runs.
    model = models.TextField(default="", db_default="")
    concurrency = models.IntegerField()
    # An item fails after this many answers that fail validation, or errors of agents.
    max_attempts = models.IntegerField()
    temperature = models.FloatField(null=True)
    timeout_s = models.IntegerField()
    budget_tokens = models.BigIntegerField(null=True)
    spent_in = models.BigIntegerField(default=0, db_default=0)
    spent_out = models.BigIntegerField(default=0, db_default=0)
    # What the caller of an agentic run stays responsible for.
    retain = models.TextField(default="", db_default="")
    # If there is a grant: what the caller delegates to the agents, and which work it keeps.
    delegated_scope = models.TextField(default="", db_default="")
    kept_work = models.TextField(default="", db_default="")
    grant_id = models.TextField(null=True)  # noqa: DJ001 (absent is not empty)
    read_only = models.BooleanField(default=True, db_default=True)
    parent_run = models.ForeignKey("retrieval.MapRun", models.RESTRICT, null=True, related_name="child_runs")
    idempotency_key = models.TextField(null=True)  # noqa: DJ001 (unique where it is given)
    total = models.IntegerField()
    prompt_hash = models.BinaryField()
    schema_hash = models.BinaryField()
    input_hash = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # The next item is taken from the open run with the oldest last claim.
    last_claim_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "map_runs"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-created_at"], name="map_runs_workspace_idx"),
            models.Index(fields=["conversation", "-created_at"], name="map_runs_conv_idx"),
            models.Index(
                F("last_claim_at").asc(nulls_first=True),
                condition=Q(state__in=["queued", "running"]),
                name="map_runs_open_idx",
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "idempotency_key"], name="map_runs_have_one_idempotency_key_each"
            ),
            models.CheckConstraint(condition=Q(prompt__contains="{{item}}"), name="map_runs_prompts_hold_the_item"),
            models.CheckConstraint(
                condition=~Q(kind="agentic") | Q(retain__regex=_NOT_BLANK),
                name="map_runs_delegate_only_with_retention",
            ),
            models.CheckConstraint(
                condition=~Q(kind="agentic")
                | Q(grant_id__isnull=True)
                | Q(delegated_scope__regex=_NOT_BLANK, kept_work__regex=_NOT_BLANK),
                name="map_runs_reduce_the_scope_of_a_grant",
            ),
            models.CheckConstraint(
                condition=~Q(state="paused") & Q(pause_reason="") | Q(state="paused") & ~Q(pause_reason=""),
                name="map_runs_pause_for_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(total__gte=1, concurrency__gte=1, max_attempts__gte=1, timeout_s__gte=1)
                & Q(spent_in__gte=0, spent_out__gte=0),
                name="map_runs_have_possible_figures",
            ),
        ]

    def __str__(self) -> str:
        return self.run_id


class MapItem(models.Model):
    """One input of a run; also a job of the queue in `conversations/work/queue.py`.

    `attempts` counts claims since the last result, `refused_answers` answers that failed validation and agents' errors.
    """

    item_id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey("retrieval.MapRun", models.RESTRICT, related_name="items")
    # From 1, in the order of the input.
    position = models.IntegerField()
    # The JSON text of the item, exactly as given.
    input = models.TextField()
    input_hash = models.BinaryField()
    state = models.TextField(
        choices=[(state.value, state.value) for state in WorkState], default=WorkState.QUEUED, db_default="queued"
    )
    run_after = models.DateTimeField(db_default=Now())
    leased_until = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    fence = models.IntegerField(default=0, db_default=0)
    attempts = models.IntegerField(default=0, db_default=0)
    refused_answers = models.IntegerField(default=0, db_default=0)
    # The number of consecutive calls without an answer: each makes the backoff longer, and MOST_FAULTS fail the item.
    faults = models.IntegerField(default=0, db_default=0)
    last_error = models.TextField(default="", db_default="")
    error_kind = models.TextField(  # noqa: DJ001 (absent while nothing has failed)
        choices=[(kind.value, kind.value) for kind in ItemErrorKind], null=True
    )
    # The last refused answer and its errors, for the next attempt.
    validation_errors = models.TextField(default="", db_default="")
    # The output of the item, as JSON on one line.
    output = models.TextField(null=True)  # noqa: DJ001 (absent until it is done)
    output_hash = models.BinaryField(null=True)
    worker = models.TextField(default="", db_default="")
    tokens_in = models.BigIntegerField(default=0, db_default=0)
    tokens_out = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "map_items"
        indexes: ClassVar = [
            models.Index(fields=["run", "state", "position"], name="map_items_run_idx"),
            models.Index(
                fields=["run", "run_after"], condition=Q(state__in=["queued", "leased"]), name="map_items_open_idx"
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "position"], name="map_items_have_one_place_each"),
            models.CheckConstraint(
                condition=Q(state="done", output__isnull=False, output_hash__isnull=False)
                | ~Q(state="done") & Q(output__isnull=True, output_hash__isnull=True),
                name="map_items_have_an_output_when_done",
            ),
            models.CheckConstraint(
                condition=~Q(state="failed") | Q(error_kind__isnull=False), name="map_items_fail_for_a_reason"
            ),
            models.CheckConstraint(condition=Q(position__gte=1), name="map_items_count_from_one"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}:{self.position} ({self.state})"


class MapEvent(models.Model):
    """One event of a run, in a hash chain by the database; events are never changed."""

    event_id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.RESTRICT, related_name="+")
    run = models.ForeignKey("retrieval.MapRun", models.RESTRICT, related_name="events")
    # The events of each run are numbered from 1 without gaps. The database sets this number, the time and the hashes.
    seq = models.IntegerField(db_default=0)
    at = models.DateTimeField(db_default=Now())
    actor = models.TextField()
    event = models.TextField(choices=[(event.value, event.value) for event in MapEventKind])
    position = models.IntegerField(null=True)
    input_hash = models.BinaryField(db_default=b"")
    output_hash = models.BinaryField(db_default=b"")
    details = ExactJSONField()
    previous_hash = models.BinaryField(db_default=b"")
    hash = models.BinaryField(db_default=b"")

    class Meta:
        db_table = "map_events"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "seq"], name="map_events_have_one_place_each"),
            models.CheckConstraint(
                condition=~Q(actor="") & ~Q(actor__contains="\n"), name="map_events_name_who_on_one_line"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.seq}: {self.event}"
