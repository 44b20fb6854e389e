"""Params of the operations of compaction; defaults are those of the services."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from compaction.types import JobState, Outcome, Reason
from conversations.param_fields import (
    MOST_ON_A_PAGE,
    NEXT,
    ONLY_THIS,
    WHOLE,
    ConversationId,
    Cursor,
    Flag,
    Identifier,
    JsonObject,
    Limit,
    Name,
    OneOf,
    Params,
    Positive,
    WholeNumber,
    optional,
)
from conversations.params import ConversationParams

_QUEUE = "Queue the work for a background worker and return its job at once."


class BackgroundParams(ConversationParams):
    background: Flag = optional(_QUEUE)


class ActivityParams(Params):
    hours: Annotated[int, Field(ge=1, le=168), WHOLE] = optional("Count the runs of this number of hours, up to now.")


class ListRunsParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    outcome: Annotated[Outcome, OneOf] = optional("Only runs with this outcome, such as failed.")
    reason: Annotated[Reason, OneOf] = optional("Only runs for this reason.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class ListJobsParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    state: Annotated[JobState, OneOf] = optional("Only jobs in this state.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class RedoSessionParams(Params):
    summary_id: Identifier = Field(description="The session, arc or epoch summary (ses_...).")
    background: Flag = optional(_QUEUE)


class ListHistoryJobsParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    project: Name = optional("Only jobs of this project and of its sessions.")
    state: Annotated[JobState, OneOf] = optional("Only jobs in this state.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class BackfillParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)


class JobParams(Params):
    job_id: Positive = Field(description="The job's id.")


class RunParams(Params):
    run_id: Identifier = Field(description="The compaction run (run_...).")


# The most keys that a host can check at once.
MOST_KEYS = 1000

_REFERENCE = "The host's own id for this compaction of its context."
_METADATA = "The host's own metadata for this boundary, as a JSON object."


class FlushParams(ConversationParams):
    host_reference: Name = Field(description=_REFERENCE)
    metadata: JsonObject | None = optional(_METADATA)
    background: Flag = optional("Record the boundary at once and queue the summaries for a background worker.")


class BoundaryParams(ConversationParams):
    host_reference: Name = Field(description=_REFERENCE)
    last_seq: WholeNumber | None = optional("The last message that the host has cut. Default: the newest.")
    metadata: JsonObject | None = optional(_METADATA)


class CoverageParams(ConversationParams):
    host_reference: Name | None = optional("Check up to this boundary. Default: the whole conversation.")
    idempotency_keys: Annotated[list[Name], Field(max_length=MOST_KEYS)] = optional(
        "Idempotency keys of messages that the host believes to be stored. Keys that are not stored are returned."
    )


class ResetEndpointParams(Params):
    name: Identifier = Field(description="The model: chat or anthropic.")


class PlanIdParams(Params):
    plan_id: Identifier = Field(description="The compaction plan (plan_...).")


class ExecutePlanParams(PlanIdParams):
    background: Flag = optional("Queue the work for a background worker and return the plan at once.")
