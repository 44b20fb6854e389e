"""Params of the operations of compaction; defaults are those of the services."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from compaction.types import JobState, Outcome, Reason
from conversations.param_fields import (
    NEXT,
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


class EvaluateParams(ConversationParams):
    """The conversation to evaluate."""


class CompactParams(ConversationParams):
    background: Flag = optional("Queue the work for a worker and return the job at once.")


class ActivityParams(Params):
    hours: Annotated[int, Field(ge=1, le=168), WHOLE] = optional("The hours over which runs are counted, up to now.")


class ListRunsParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    outcome: Annotated[Outcome, OneOf] = optional("Only runs with this outcome, such as failed.")
    reason: Annotated[Reason, OneOf] = optional("Only runs for this reason.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class ListJobsParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    state: Annotated[JobState, OneOf] = optional("Only jobs in this state.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class RedoParams(ConversationParams):
    background: Flag = optional("Queue the work for a worker and return the job at once.")


class SummarizeSessionParams(ConversationParams):
    background: Flag = optional("Queue the work for a worker and return the job at once.")


class RedoSessionParams(Params):
    summary_id: Identifier = Field(description="The session, arc or epoch summary (ses_...).")
    background: Flag = optional("Queue the work for a worker and return the job at once.")


class ListHistoryJobsParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    project: Name = optional("Only jobs of this project, including those of its sessions.")
    state: Annotated[JobState, OneOf] = optional("Only jobs in this state.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class BackfillParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")


class JobParams(Params):
    job_id: Positive = Field(description="The job.")


class RunParams(Params):
    run_id: Identifier = Field(description="The run.")


# The most keys that a host can check at once.
MOST_KEYS = 1000

_REFERENCE = "The host's own id for this compaction of its context."
_METADATA = "Any metadata of the host, as a JSON object."


class FlushParams(ConversationParams):
    host_reference: Name = Field(description=_REFERENCE)
    metadata: JsonObject | None = optional(_METADATA)
    background: Flag = optional("Record the boundary at once and queue the summaries for a worker.")


class BoundaryParams(ConversationParams):
    host_reference: Name = Field(description=_REFERENCE)
    last_seq: WholeNumber | None = optional("The last message that the host has removed; the newest if not given.")
    metadata: JsonObject | None = optional(_METADATA)


class ListBoundariesParams(ConversationParams):
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class CoverageParams(ConversationParams):
    host_reference: Name | None = optional("The boundary up to which to check; the whole conversation if not given.")
    idempotency_keys: Annotated[list[Name], Field(max_length=MOST_KEYS)] = optional(
        "Idempotency keys of messages that the host believes to be stored; those that are not are returned."
    )


class ListEndpointsParams(Params):
    """No params."""


class ResetEndpointParams(Params):
    name: Identifier = Field(description="The model: chat or anthropic.")


class PlanParams(ConversationParams):
    """The conversation whose compaction is to be planned."""


class ListPlansParams(ConversationParams):
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class PlanIdParams(Params):
    plan_id: Identifier = Field(description="The plan.")


class ExecutePlanParams(PlanIdParams):
    background: Flag = optional("Queue the work for a worker and return the plan at once.")
