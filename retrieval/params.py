"""What a caller may say to the four ways to read. Defaults are the services' own."""

from __future__ import annotations

from typing import Any

from conversations.param_fields import Choice, ConversationId, Flag, Moment, Number, Several, Text, WholeNumber
from conversations.params import ConversationParams, Params
from conversations.types import PartType, Role
from retrieval.assembly.types import MessageFormat
from retrieval.describing.browsing import MOST_PAGES, BrowseSort
from retrieval.search.criteria import MOST_NAMED
from retrieval.types import GrepScope, GrepSort

# What the policy may allow at most; what it does allow, the services say.
LONGEST_QUERY = 100_000
MOST_MATCHES = 10_000
MOST_TOKENS = 100_000_000
MOST_LISTED = 1_000
MOST_IDS = 50
LEAST_ROOM = 32
LONGEST_QUESTION = 10_000


class GrepParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")
    query = Text(max_length=LONGEST_QUERY, help_text="What to look for.")
    mode = Choice(
        choices=["full_text", "regex"], required=False, help_text="Words in websearch syntax, or a regular expression."
    )
    scope = Choice(choices=list(GrepScope), required=False, help_text="Where to look; both is messages and summaries.")
    conversation_ids = Several(
        child=ConversationId(), max_length=MOST_NAMED, required=False, help_text="Several conversations instead of one."
    )
    since = Moment(required=False, help_text="Only what is of this moment or later, such as 2026-01-31T09:00:00Z.")
    until = Moment(required=False, help_text="Only what is of before this moment.")
    roles = Several(
        child=Choice(choices=list(Role)),
        max_length=MOST_NAMED,
        required=False,
        help_text="Only messages of these roles.",
    )
    part_types = Several(
        child=Choice(choices=list(PartType)),
        max_length=MOST_NAMED,
        required=False,
        help_text="Only messages with a part of these types.",
    )
    tool_names = Several(
        child=Text(max_length=500),
        max_length=MOST_NAMED,
        required=False,
        help_text="Only calls of these tools and their results.",
    )
    from_seq = WholeNumber(required=False, help_text="Only messages from this seq on, and summaries that reach there.")
    to_seq = WholeNumber(required=False, help_text="Only messages up to this seq, and summaries that begin there.")
    depth = WholeNumber(required=False, help_text="Only summaries of this depth; 0 for those made from messages.")
    under = Text(required=False, max_length=200, help_text="Only what this summary was made from, all the way down.")
    sort = Choice(
        choices=list(GrepSort),
        required=False,
        help_text="By relevance if not said, a regular expression by recency; for hybrid, what is newer is worth more.",
    )
    limit = WholeNumber(required=False, min_value=1, max_value=MOST_MATCHES, help_text="The most matches to give.")
    max_tokens = WholeNumber(
        required=False, allow_null=True, min_value=1, max_value=MOST_TOKENS, help_text="The most tokens to give."
    )
    cursor = Text(required=False, allow_null=True, max_length=4000, help_text="Where an earlier answer left off.")
    cold = Flag(required=False, help_text="Whether to search the messages that have gone cold, and no others.")


class DescribeParams(Params):
    id = Text(
        max_length=200,
        help_text="A summary (sum_...), a message (msg_...), a file (file_...), a run (run_...), a conversation "
        "(conv_...) or its session.",
    )


class RangeParams(ConversationParams):
    from_seq = WholeNumber(min_value=1, help_text="The first message of the range.")
    to_seq = WholeNumber(min_value=1, help_text="The last message of the range.")


class DescribeRangeParams(RangeParams):
    """The range that is asked about."""


class ImpactParams(Params):
    id = Text(max_length=200, help_text="A summary (sum_...) or a message (msg_...).")
    limit = WholeNumber(required=False, min_value=1, max_value=MOST_LISTED, help_text="The most summaries to list.")


class Levels(WholeNumber):
    """How far down: a number of levels, or -1 for all."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": -1, "max_value": 1000, **options})


class Opening(Params):
    """How far to open, and how much of it to give."""

    depth = Levels(required=False, help_text="How many levels down, from 1 up; -1 for all.")
    include_messages = Flag(required=False, help_text="Whether to give the messages themselves.")
    token_cap = WholeNumber(required=False, min_value=1, max_value=MOST_TOKENS, help_text="The most tokens to give.")
    keep_ends = Flag(required=False, help_text="Whether a page that cannot hold everything ends with the last item.")
    cursor = Text(required=False, allow_null=True, max_length=4000, help_text="Where an earlier answer left off.")


class ExpandParams(Opening):
    summary_id = Text(max_length=200, help_text="The summary to open.")


class ExpandRangeParams(Opening, RangeParams):
    only_messages = Flag(required=False, help_text="Whether to give nothing but the messages, every one of them.")


class ExpandQueryParams(Params):
    question = Text(max_length=LONGEST_QUESTION, help_text="What is to be found out.")
    ids = Several(
        child=Text(max_length=200),
        required=False,
        max_length=MOST_IDS,
        help_text="The summaries and messages to look into.",
    )
    query = Text(
        required=False,
        allow_null=True,
        max_length=LONGEST_QUERY,
        help_text="What to search for instead; without ids, the question.",
    )
    conversation_id = ConversationId(
        required=False, allow_null=True, help_text="The conversation to search; all of the workspace without one."
    )
    depth = WholeNumber(required=False, min_value=1, max_value=3, help_text="How many levels down may be read.")
    token_cap = WholeNumber(
        required=False,
        allow_null=True,
        min_value=LEAST_ROOM,
        max_value=MOST_TOKENS,
        help_text="The most tokens to read.",
    )
    grant_id = Text(
        required=False, allow_null=True, max_length=200, help_text="The grant of an earlier answer, to ask again by it."
    )


class ListGrantsParams(Params):
    before_grant = Text(required=False, max_length=200, help_text="Only grants older than this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=MOST_LISTED, help_text="The most grants to list.")


class GrantParams(Params):
    grant_id = Text(max_length=200, help_text="The grant (grant_...).")


class LineageParams(ConversationParams):
    """The conversation whose summaries and their sources are asked for."""


class BrowseParams(Params):
    """Which of the conversations, and in which order."""

    query = Text(max_length=200, required=False, help_text="A piece of a title or of a session's name.")
    sort = Choice(
        choices=list(BrowseSort),
        required=False,
        help_text="The newest use first, the largest or the coldest first, or by title.",
    )
    page = WholeNumber(min_value=1, max_value=MOST_PAGES, required=False, help_text="Which page, from 1.")
    limit = WholeNumber(min_value=1, max_value=200, required=False, help_text="How many on a page.")


class LineageWindowParams(ConversationParams):
    """From which seq to which, and when."""

    from_seq = WholeNumber(min_value=1, required=False, help_text="The first seq of the window; 1 when not given.")
    to_seq = WholeNumber(min_value=1, required=False, help_text="The last seq; the newest message's when not given.")
    with_messages = Flag(required=False, help_text="Whether single messages are told where they are few. Default: yes.")
    as_of_run = Text(
        max_length=200, required=False, help_text="A run: the window shows what there was when it was through."
    )
    resolution = WholeNumber(
        min_value=1,
        max_value=10_000,
        required=False,
        help_text="So many parts of it can be told apart; narrower summaries that no model sees come in bundles.",
    )


class AsOf(Text):
    """A past moment, told in one of three ways; which, and whether there is such, the service says."""

    def to_internal_value(self, data: Any) -> str:
        is_seq = isinstance(data, int) and not isinstance(data, bool)
        return super().to_internal_value(str(data) if is_seq else data)


class Share(Number):
    """A part of a whole: above nothing, up to all of it."""


class AssembleParams(ConversationParams):
    budget = WholeNumber(
        required=False, allow_null=True, min_value=1, max_value=MOST_TOKENS, help_text="The most tokens to give."
    )
    query = Text(required=False, allow_null=True, max_length=LONGEST_QUERY, help_text="What the next turn is about.")
    format = Choice(
        choices=[each.value for each in MessageFormat],
        required=False,
        allow_null=True,
        help_text="Whose messages to give it as; without one, it comes as LCM's own items.",
    )
    reserve = WholeNumber(
        required=False, max_value=MOST_TOKENS, help_text="Tokens of the budget to leave for the model's answer."
    )
    as_of = AsOf(
        required=False,
        allow_null=True,
        max_length=80,
        help_text="A past moment: a seq, a time such as 2026-01-31T12:00:00Z, or a run's id; settings are today's.",
    )
    keep_receipt = Flag(required=False, help_text="Whether to keep the receipt, to be compared with another one later.")


class ListReceiptsParams(ConversationParams):
    before_receipt = Text(required=False, max_length=200, help_text="Only receipts kept before this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=MOST_LISTED, help_text="The most receipts to list.")


class ReceiptParams(Params):
    receipt_id = Text(max_length=200, help_text="The receipt (rcp_...).")


class CompareReceiptsParams(ReceiptParams):
    other = Text(max_length=200, help_text="The receipt to compare it with, as a rule a later one.")


class RecallParams(ConversationParams):
    budget = WholeNumber(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_TOKENS,
        help_text="The tokens of the whole prompt; its model's without one.",
    )
    share = Share(
        required=False, min_value=0, max_value=1, help_text="How much of the budget the section may take, above 0."
    )
