"""What a caller may say to the compaction engine. Defaults are the engine's own."""

from __future__ import annotations

from rest_framework import serializers

from conversations.params import ConversationParams, Params, Text, WholeNumber


class EvaluateParams(ConversationParams):
    """The conversation whose pressure is asked for."""


class CompactParams(ConversationParams):
    background = serializers.BooleanField(
        required=False, help_text="Leave the work to a worker and answer at once with the job."
    )


class ListRunsParams(ConversationParams):
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class JobParams(Params):
    job_id = WholeNumber(min_value=1, help_text="The job.")


class RunParams(Params):
    run_id = Text(max_length=200, help_text="The run.")
