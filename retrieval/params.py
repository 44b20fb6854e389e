"""What a caller may say to the four ways to read. Defaults are the services' own."""

from __future__ import annotations

from rest_framework import serializers

from conversations.params import ConversationId, ConversationParams, Params, Text, WholeNumber

# What the policy may allow at most; what it does allow, the services say.
LONGEST_QUERY = 100_000
MOST_MATCHES = 10_000
MOST_TOKENS = 100_000_000


class GrepParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")
    query = Text(max_length=LONGEST_QUERY, help_text="What to look for.")
    mode = serializers.ChoiceField(
        choices=["full_text", "regex"], required=False, help_text="Words in websearch syntax, or a regular expression."
    )
    scope = serializers.ChoiceField(
        choices=["messages", "summaries", "both"], required=False, help_text="Where to look."
    )
    limit = WholeNumber(required=False, min_value=1, max_value=MOST_MATCHES, help_text="The most matches to give.")


class DescribeParams(Params):
    id = Text(max_length=200, help_text="A summary (sum_...), a file (file_...) or a message (msg_...).")


class ExpandParams(Params):
    summary_id = Text(max_length=200, help_text="The summary to open.")
    depth = WholeNumber(required=False, min_value=-1, max_value=1000, help_text="How many levels down; -1 for all.")
    include_messages = serializers.BooleanField(required=False, help_text="Whether to give the messages themselves.")
    token_cap = WholeNumber(required=False, min_value=1, max_value=MOST_TOKENS, help_text="The most tokens to give.")
    cursor = Text(required=False, allow_null=True, max_length=4000, help_text="Where an earlier answer left off.")


class LineageParams(ConversationParams):
    """The conversation whose summaries and their sources are asked for."""


class AssembleParams(ConversationParams):
    budget = WholeNumber(
        required=False, allow_null=True, min_value=1, max_value=MOST_TOKENS, help_text="The most tokens to give."
    )
    query = Text(required=False, allow_null=True, max_length=LONGEST_QUERY, help_text="What the next turn is about.")
