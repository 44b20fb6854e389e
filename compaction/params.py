"""What a caller may say to the compaction engine. Defaults are the engine's own."""

from __future__ import annotations

from rest_framework import serializers

from compaction.hosts.host_service import MOST_KEYS
from compaction.types import JobState, Outcome, Reason
from conversations.content.lossless_values import MAX_NAME
from conversations.param_fields import Choice, ConversationId, Flag, JsonObject, Text, WholeNumber
from conversations.params import ConversationParams, Params


class EvaluateParams(ConversationParams):
    """The conversation whose pressure is compared."""


class CompactParams(ConversationParams):
    background = Flag(required=False, help_text="Leave the work to a worker and answer at once with the job.")


class ActivityParams(Params):
    hours = WholeNumber(required=False, min_value=1, max_value=168, help_text="How far back runs are counted.")


class ListRunsParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")
    outcome = Choice(choices=list(Outcome), required=False, help_text="Only runs that ended so, such as failed.")
    reason = Choice(choices=list(Reason), required=False, help_text="Only runs for this reason.")
    before_run = Text(required=False, max_length=200, help_text="Only runs older than this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class ListJobsParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")
    state = Choice(choices=list(JobState), required=False, help_text="Only jobs in this state.")
    before_id = WholeNumber(required=False, help_text="Only jobs older than this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class RedoParams(ConversationParams):
    background = Flag(required=False, help_text="Leave it to a worker and answer at once.")


class BackfillParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")


class JobParams(Params):
    job_id = WholeNumber(min_value=1, help_text="The job.")


class RunParams(Params):
    run_id = Text(max_length=200, help_text="The run.")


_REFERENCE = "The host's own name for this compaction of its context."
_METADATA = "Anything of the host's."


class FlushParams(ConversationParams):
    host_reference = Text(max_length=MAX_NAME, help_text=_REFERENCE)
    metadata = JsonObject(required=False, allow_null=True, help_text=_METADATA)
    background = Flag(required=False, help_text="Record the boundary at once and leave the summaries to a worker.")


class BoundaryParams(ConversationParams):
    host_reference = Text(max_length=MAX_NAME, help_text=_REFERENCE)
    last_seq = WholeNumber(
        required=False, allow_null=True, help_text="The last message that the host has cut off; the newest if not said."
    )
    metadata = JsonObject(required=False, allow_null=True, help_text=_METADATA)


class ListBoundariesParams(ConversationParams):
    before_reference = Text(
        required=False, max_length=MAX_NAME, help_text="Only boundaries recorded before the one of this name."
    )
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class CoverageParams(ConversationParams):
    host_reference = Text(
        required=False,
        allow_null=True,
        max_length=MAX_NAME,
        help_text="The boundary up to which to look; the whole conversation if not said.",
    )
    idempotency_keys = serializers.ListField(
        child=Text(max_length=MAX_NAME),
        required=False,
        max_length=MOST_KEYS,
        help_text="The host's own keys of messages that it believes to be archived.",
    )


class ListEndpointsParams(Params):
    """There is nothing to say."""


class ResetEndpointParams(Params):
    name = Text(max_length=200, help_text="The model: chat or anthropic.")


class PlanParams(ConversationParams):
    """The conversation whose compaction is to be planned."""


class ListPlansParams(ConversationParams):
    before_plan = Text(required=False, max_length=200, help_text="Only plans older than this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class PlanIdParams(Params):
    plan_id = Text(max_length=200, help_text="The plan.")


class ExecutePlanParams(PlanIdParams):
    background = Flag(required=False, help_text="Leave the work to a worker and answer at once with the plan.")
