"""Params of search, reading, assembly and history, with the services' defaults."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from compaction.history.types import HistoryKind
from conversations.content.lossless_values import NO_NUL
from conversations.formats.rendered import MessageFormat
from conversations.param_fields import (
    MOST_ON_A_PAGE,
    NEXT,
    NUMBER,
    ONLY_THIS,
    WHOLE,
    ConversationId,
    Cursor,
    Flag,
    Identifier,
    Limit,
    Moment,
    Name,
    OneOf,
    Params,
    Positive,
    Text,
    WholeNumber,
    optional,
)
from conversations.params import AppendMessagesParams, ConversationParams, FewValues, IncomingMessage
from conversations.types import PartType, Role
from retrieval.delegation.types import DEEPEST, LEAST_ROOM
from retrieval.describing.browsing import BrowseSort
from retrieval.describing.lineage import MOST_LEVELS, Direction
from retrieval.policy import RetrievalPolicy
from retrieval.types import BranchChoice, GrepMode, GrepScope, GrepSort

# The most that the policy can be set to; services check the length that it allows.
LONGEST_QUERY = 100_000
# The most values in a list of filters; to search the whole workspace, name no conversations.
MOST_NAMED = 100
MOST_MATCHES = RetrievalPolicy.max_grep_results
MOST_TOKENS = 100_000_000
MOST_IDS = 50
LONGEST_QUESTION = 10_000
MOST_ENTRIES = 200
MOST_SESSIONS_AGO = 100_000

_BUDGET = "Maximum number of tokens of the context. Default: the budget of the conversation's model."
_FORMAT = "The format of the context's messages, such as a vendor's. Default: LCM's own items."
_RESERVE = "The number of tokens of the budget to leave for the model's answer."
_RECEIPT = "Whether to store the receipt, so that it can be compared with other receipts later."
Query = Annotated[Text, Field(max_length=LONGEST_QUERY)]
Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS), WHOLE]
FEW = Field(max_length=MOST_NAMED)
Kind = Annotated[HistoryKind, OneOf]
MostEntries = Annotated[int, Field(ge=1, le=MOST_ENTRIES), WHOLE]


class GrepParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    query: Query = Field(description="What to search for.")
    mode: Annotated[GrepMode, OneOf] = optional(
        "full_text: words in websearch syntax. regex: a regular expression. hybrid: by words, and by meaning if the "
        "site has an embedder. semantic: messages by meaning alone; fails without an embedder."
    )
    scope: Annotated[GrepScope, OneOf] = optional("What to search: both means messages and summaries.")
    conversation_ids: Annotated[list[ConversationId], FEW] = optional("Several conversations instead of one.")
    since: Moment = optional("Only matches from this time or later, such as 2026-01-31T09:00:00Z.")
    until: Moment = optional("Only matches from before this time.")
    roles: Annotated[list[Annotated[Role, OneOf]], FEW] = optional("Only messages of these roles.")
    part_types: Annotated[list[Annotated[PartType, OneOf]], FEW] = optional("Only messages with a part of these types.")
    tool_names: Annotated[list[Annotated[Text, Field(max_length=500)]], FEW] = optional(
        "Only calls of these tools and their results."
    )
    from_seq: WholeNumber = optional("Only messages from this seq on, and summaries that end there or later.")
    to_seq: WholeNumber = optional("Only messages up to this seq, and summaries that begin there or earlier.")
    depth: WholeNumber = optional("Only summaries of this depth; 0 for those made from messages.")
    under: Identifier = optional("Only sources of this summary, at any depth.")
    sort: Annotated[GrepSort, OneOf] = optional(
        "hybrid: relevance that favours newer matches. Default: relevance; recency for regex and with cold.",
    )
    limit: Annotated[int, Field(ge=1, le=MOST_MATCHES), WHOLE] = optional("Maximum number of matches on a page.")
    max_tokens: Tokens | None = optional("Maximum number of tokens on a page.")
    cursor: Cursor | None = optional(NEXT)
    branch: Annotated[BranchChoice, OneOf] = optional(
        "active: only the active path of each conversation. all: also messages off the active path."
    )
    cold: Flag = optional("Search only the messages in the cold tier.")


Phrase = Annotated[Text, Field(max_length=500)]


class AboutParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    entity: Phrase = Field(description="A name or an identifier: a person, a path, a function, a number.")
    aspect: Phrase = optional("Only texts that also contain these words, if there are any.")
    question: Annotated[Text, Field(max_length=LONGEST_QUESTION)] = optional("The question to rank the results by.")
    max_tokens: Tokens = optional("Maximum number of tokens to return.")


class DescribeParams(Params):
    id: Name = Field(
        description="A summary (sum_...), a message (msg_...), a file (file_...), a compaction run (run_...), a "
        "summary of a session, an arc or an epoch (ses_...), a conversation (conv_...) or its session_id."
    )
    token_cap: Tokens = optional("Maximum number of tokens of a message's text to return.")
    cursor: Cursor | None = optional(NEXT)


class RangeParams(ConversationParams):
    from_seq: Positive = Field(description="The seq of the first message of the range.")
    to_seq: Positive = Field(description="The seq of the last message of the range.")


class ImpactParams(Params):
    id: Identifier = Field(
        description="A message (msg_...), a summary (sum_...), a session summary (ses_...) or a file (file_...)."
    )
    direction: Annotated[Direction, OneOf] = optional("upstream: what derives from the item. downstream: its sources.")
    max_depth: Annotated[int, Field(ge=1, le=MOST_LEVELS), WHOLE] = optional("Maximum distance: the number of links.")
    min_confidence: Annotated[float, Field(ge=0, le=1), NUMBER] = optional("The lowest confidence of links to follow.")
    limit: Limit = optional("Maximum number of items to list.")


def _level(value: int) -> int:
    if value == 0:
        raise ValueError("This must be at least 1, or -1 for all levels.")
    return value


Levels = Annotated[int, Field(ge=-1, le=1000, json_schema_extra={"not": {"const": 0}}), WHOLE, AfterValidator(_level)]
"""A number of levels to open, or -1 for all."""


class Opening(Params):
    """How far to open, and how much to return."""

    depth: Levels = optional("The number of levels to open, at least 1; -1 for all.")
    include_messages: Flag = optional("Whether to return the messages themselves.")
    token_cap: Tokens = optional("Maximum number of tokens on a page.")
    keep_ends: Flag = optional("Whether a page that cannot hold everything still ends with the last item, after a gap.")
    cursor: Cursor | None = optional(NEXT)


class ExpandParams(Opening):
    summary_id: Identifier = Field(description="The summary to open.")


class ExpandRangeParams(Opening, RangeParams):
    only_messages: Flag = optional("Whether to return all messages of the range, and no summaries.")


class ExpandQueryParams(Params):
    question: Annotated[Text, Field(max_length=LONGEST_QUESTION)] = Field(description="The question to answer.")
    ids: Annotated[list[Identifier], Field(max_length=MOST_IDS)] = optional("The summaries and messages to look into.")
    query: Query | None = optional("What to search for, instead of naming ids. Default: the question.")
    conversation_id: ConversationId | None = optional("Search only this conversation. Default: all of the workspace.")
    depth: Annotated[int, Field(ge=1, le=DEEPEST), WHOLE] = optional("The number of levels below these items to read.")
    token_cap: Annotated[int, Field(ge=LEAST_ROOM, le=MOST_TOKENS), WHOLE] | None = optional("Maximum tokens to read.")
    grant_id: Identifier | None = optional("The grant of an earlier answer, to ask another question under it.")


class GrantParams(Params):
    grant_id: Identifier = Field(description="The grant (grant_...).")


class BrowseParams(Params):
    """The conversations to list, and their order."""

    query: Identifier = optional("Only conversations whose title or session_id contains this text.")
    sort: Annotated[BrowseSort, OneOf] = optional(
        "Sort by last change, tokens of the context, number of messages, title, or number of cold messages."
    )
    cursor: Cursor = optional(NEXT)
    limit: Annotated[int, Field(ge=1, le=200), WHOLE] = optional(MOST_ON_A_PAGE)


class LineageWindowParams(ConversationParams):
    """The range of the window, and the time it shows."""

    from_seq: Positive = optional("The first seq of the window. Default: 1.")
    to_seq: Positive = optional("The last seq of the window. Default: that of the newest message.")
    with_messages: Flag = optional("Whether to list single messages if there are only few. Default: yes.")
    as_of_run: Identifier = optional("A compaction run: the window shows the lineage as it was when the run ended.")
    resolution: Annotated[int, Field(ge=1, le=10_000), WHOLE] = optional(
        "The number of columns of a drawing of the window; narrower summaries outside the context are bundled.",
    )


def _as_of(value: Any) -> Any:
    is_seq = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_seq else value


AsOf = Annotated[
    str,
    StringConstraints(min_length=1, max_length=80, pattern=NO_NUL),
    BeforeValidator(_as_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": "^(0|[1-9][0-9]{0,18})$"},
                {"type": "string", "pattern": "^run_[0-9a-zA-Z]{1,70}$"},
                {"type": "string", "format": "date-time"},
            ]
        }
    ),
]
"""A past moment: a seq, a time or a run. The service parses it and refuses unknown moments."""
Share = Annotated[float, Field(gt=0, le=1), NUMBER]


class AssembleParams(ConversationParams):
    budget: Tokens | None = optional(_BUDGET)
    query: Query | None = optional("What the next turn is about.")
    format: Annotated[MessageFormat, OneOf] | None = optional(_FORMAT)
    reserve: Annotated[int, Field(ge=0, le=MOST_TOKENS), WHOLE] = optional(_RESERVE)
    as_of: AsOf | None = optional(
        "A past moment: a seq, a time such as 2026-01-31T12:00:00Z, or a run's id. The current settings apply.",
    )
    keep_receipt: Flag = optional(_RECEIPT)


class TurnParams(AppendMessagesParams):
    messages: Annotated[list[IncomingMessage], FewValues] = Field(description="0 to 1000 new messages, oldest first.")
    idempotency_key: Name = optional("A key for the whole turn: a turn repeated with its key stores nothing twice.")
    head_seq: WholeNumber = optional("Move the head to this seq first, so that the new messages follow it.")
    budget: Tokens | None = optional(_BUDGET)
    query: Query | None = optional("What the next turn is about.")
    context_format: Annotated[MessageFormat, OneOf] | None = optional(_FORMAT)
    reserve: Annotated[int, Field(ge=0, le=MOST_TOKENS), WHOLE] = optional(_RESERVE)
    keep_receipt: Flag = optional(_RECEIPT)


class ReceiptParams(Params):
    receipt_id: Identifier = Field(description="The receipt (rcp_...).")


class CompareReceiptsParams(ReceiptParams):
    other: Identifier = Field(description="The receipt to compare it with, usually a later one.")


class RecallParams(Params):
    conversation_id: ConversationId = optional("The current conversation; its own past is recalled, too.")
    project: Name = optional("The project whose earlier sessions to recall. Default: the conversation's project.")
    query: Query | None = optional("What the session is about. Earlier sessions that match it come first.")
    budget: Tokens | None = optional("The tokens of the whole prompt. Default: the budget of the conversation's model.")
    share: Share = optional("The share of the budget that the recalled text may take, above 0 and at most 1.")
    marked: Flag = optional("Whether to mark the text, so that appends that contain it do not store it.")


class TimelineParams(Params):
    project: Name = optional("The name of the project. Default: all projects.")
    conversation_id: ConversationId = optional("A conversation of the project, instead of its name.")
    kind: Kind = optional("Only sessions, only arcs or only epochs.")
    cursor: Cursor = optional(NEXT)
    limit: MostEntries = optional(MOST_ON_A_PAGE)


class ExpandSessionParams(Params):
    summary_id: Identifier = Field(description="The session, arc or epoch summary (ses_...).")
    depth: Levels = optional("The number of levels to open, at least 1; -1 for all.")
    include_messages: Flag = optional("Whether to include all messages below.")
    token_cap: Tokens = optional("Maximum number of tokens on a page.")
    cursor: Cursor | None = optional(NEXT)


class SessionAgoParams(ConversationParams):
    sessions_ago: Annotated[int, Field(ge=1, le=MOST_SESSIONS_AGO), WHOLE] = optional(
        "The number of sessions to go back; 1 is the session before."
    )


class GrepSessionsParams(Params):
    query: Query = Field(description="What to search for.")
    project: Name = optional("Only this project. Default: all of the workspace.")
    kind: Kind = optional("Only summaries of sessions, only of arcs or only of epochs.")
    cursor: Cursor = optional(NEXT)
    limit: MostEntries = optional(MOST_ON_A_PAGE)
