"""Parameters of the reading operations. Defaults are those of the services."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from conversations.content.lossless_values import NO_NUL
from conversations.formats.rendered import MessageFormat
from conversations.param_fields import (
    NEXT,
    NUMBER,
    WHOLE,
    ConversationId,
    Cursor,
    Flag,
    Identifier,
    Moment,
    Name,
    OneOf,
    Params,
    Positive,
    Text,
    WholeNumber,
    optional,
)
from conversations.params import AppendMessagesParams, ConversationParams, IncomingMessage
from conversations.types import PartType, Role
from retrieval.describing.browsing import BrowseSort
from retrieval.describing.lineage import MOST_LEVELS, Direction
from retrieval.policy import RetrievalPolicy
from retrieval.types import BranchChoice, GrepScope, GrepSort

# The upper bound of what a policy can allow; the services enforce the policy in force.
LONGEST_QUERY = 100_000
# Enough for a list made by hand; to search a whole workspace, name no conversation.
MOST_NAMED = 100
MOST_MATCHES = RetrievalPolicy.max_grep_results
MOST_TOKENS = 100_000_000
MOST_LISTED = 1_000
MOST_IDS = 50
LEAST_ROOM = 32
LONGEST_QUESTION = 10_000

Query = Annotated[Text, Field(max_length=LONGEST_QUERY)]
Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS), WHOLE]
MostListed = Annotated[int, Field(ge=1, le=MOST_LISTED), WHOLE]
FEW = Field(max_length=MOST_NAMED)


class GrepParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    query: Query = Field(description="What to look for.")
    mode: Literal["full_text", "regex", "semantic", "hybrid"] = optional(
        "Words in websearch syntax, or a regular expression; where the operator has set up an embedder, semantic finds "
        "messages by what they mean, and hybrid by words and meaning."
    )
    scope: Annotated[GrepScope, OneOf] = optional("Where to look; both is messages and summaries.")
    conversation_ids: Annotated[list[ConversationId], FEW] = optional("Several conversations instead of one.")
    since: Moment = optional("Only what is dated at or after this time, such as 2026-01-31T09:00:00Z.")
    until: Moment = optional("Only what is dated before this time.")
    roles: Annotated[list[Annotated[Role, OneOf]], FEW] = optional("Only messages of these roles.")
    part_types: Annotated[list[Annotated[PartType, OneOf]], FEW] = optional("Only messages with a part of these types.")
    tool_names: Annotated[list[Annotated[Text, Field(max_length=500)]], FEW] = optional(
        "Only calls of these tools and their results."
    )
    from_seq: WholeNumber = optional("Only messages from this seq on, and summaries that end at or after it.")
    to_seq: WholeNumber = optional("Only messages up to this seq, and summaries that begin at or before it.")
    depth: WholeNumber = optional("Only summaries of this depth; 0 for those made from messages.")
    under: Identifier = optional("Only what this summary was made from, all the way down.")
    sort: Annotated[GrepSort, OneOf] = optional(
        "Default: relevance, for a regular expression recency; hybrid is relevance weighted by freshness.",
    )
    limit: Annotated[int, Field(ge=1, le=MOST_MATCHES), WHOLE] = optional("The most matches to give.")
    max_tokens: Tokens | None = optional("The most tokens to give.")
    cursor: Cursor | None = optional(NEXT)
    branch: Annotated[BranchChoice, OneOf] = optional(
        "active: only the active path of each conversation; all: abandoned branches, too."
    )
    cold: Flag = optional("Whether to search only the messages in cold storage, which are not searched otherwise.")


Phrase = Annotated[Text, Field(max_length=500)]


class AboutParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    entity: Phrase = Field(description="A name or an identifier: a person, a path, a function, a number.")
    aspect: Phrase = optional("Words that a text must contain besides the entity, if any text does.")
    question: Annotated[Text, Field(max_length=LONGEST_QUESTION)] = optional("The question to rank the texts by.")
    max_tokens: Tokens = optional("The most tokens to give.")


class DescribeParams(Params):
    id: Identifier = Field(
        description="A summary (sum_...), a message (msg_...), a file (file_...), a run (run_...), a summary "
        "of a session, an arc or an epoch (ses_...), a conversation (conv_...) or its session."
    )
    token_cap: Tokens = optional("The most tokens of a message's text to give.")
    cursor: Cursor | None = optional(NEXT)


class RangeParams(ConversationParams):
    from_seq: Positive = Field(description="The first message of the range.")
    to_seq: Positive = Field(description="The last message of the range.")


class DescribeRangeParams(RangeParams):
    """The range to describe."""


class ImpactParams(Params):
    id: Identifier = Field(
        description="A message (msg_...), a summary (sum_...), a session summary (ses_...) or a file (file_...)."
    )
    direction: Annotated[Direction, OneOf] = optional("Upstream for what derives from it; downstream for its sources.")
    max_depth: Annotated[int, Field(ge=1, le=MOST_LEVELS), WHOLE] = optional("The greatest distance to follow links.")
    min_confidence: Annotated[float, Field(ge=0, le=1), NUMBER] = optional("The least confidence of links to follow.")
    limit: MostListed = optional("The most things to list.")


def _level(value: int) -> int:
    if value == 0:
        raise ValueError("This must be at least 1, or -1 for all levels.")
    return value


Levels = Annotated[int, Field(ge=-1, le=1000, json_schema_extra={"not": {"const": 0}}), WHOLE, AfterValidator(_level)]
"""How far down: a number of levels, or -1 for all."""


class Opening(Params):
    """How many levels to open, and how much to return."""

    depth: Levels = optional("How many levels down, from 1 up; -1 for all.")
    include_messages: Flag = optional("Whether to return messages as well as summaries.")
    token_cap: Tokens = optional("The most tokens to give.")
    keep_ends: Flag = optional("Whether a page that cannot hold everything still ends with the very last item.")
    cursor: Cursor | None = optional(NEXT)


class ExpandParams(Opening):
    summary_id: Identifier = Field(description="The summary to open.")


class ExpandRangeParams(Opening, RangeParams):
    only_messages: Flag = optional("Whether to return every message of the range, and no summaries.")


class ExpandQueryParams(Params):
    question: Annotated[Text, Field(max_length=LONGEST_QUESTION)] = Field(description="The question to answer.")
    ids: Annotated[list[Identifier], Field(max_length=MOST_IDS)] = optional("The summaries and messages to read.")
    query: Query | None = optional("Search for this instead of naming ids; default: the question.")
    conversation_id: ConversationId | None = optional("The conversation to search; all of the workspace without one.")
    depth: Annotated[int, Field(ge=1, le=3), WHOLE] = optional("How many levels below these may be read.")
    token_cap: Annotated[int, Field(ge=LEAST_ROOM, le=MOST_TOKENS), WHOLE] | None = optional("The most tokens to read.")
    grant_id: Identifier | None = optional("The grant of an earlier answer, to ask another question under it.")


class ListGrantsParams(Params):
    cursor: Cursor = optional(NEXT)
    limit: MostListed = optional("The most grants to list.")


class GrantParams(Params):
    grant_id: Identifier = Field(description="The grant (grant_...).")


class LineageParams(ConversationParams):
    """The conversation whose lineage to return."""


class BrowseParams(Params):
    """Which of the conversations, and in which order."""

    query: Identifier = optional("A piece of a title or of a session's name.")
    sort: Annotated[BrowseSort, OneOf] = optional(
        "By latest use, by active tokens, by messages or by cold messages, each largest first; or by title."
    )
    cursor: Cursor = optional(NEXT)
    limit: Annotated[int, Field(ge=1, le=200), WHOLE] = optional("How many on a page.")


class LineageWindowParams(ConversationParams):
    """The window of the lineage: its seqs, and the run as of which to read it."""

    from_seq: Positive = optional("The first seq of the window; 1 when not given.")
    to_seq: Positive = optional("The last seq; the newest message's when not given.")
    with_messages: Flag = optional("Whether to list single messages where they are few. Default: yes.")
    as_of_run: Identifier = optional("A run: read the window as of the end of it.")
    resolution: Annotated[int, Field(ge=1, le=10_000), WHOLE] = optional(
        "The columns of the drawing: inactive summaries narrower than one column come in bundles.",
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
"""A past moment: a seq, a time or a run; the service parses it and checks that it exists."""
Share = Annotated[float, Field(gt=0, le=1), NUMBER]


class AssembleParams(ConversationParams):
    budget: Tokens | None = optional("The most tokens to give.")
    query: Query | None = optional("What the next turn is about.")
    format: Annotated[MessageFormat, OneOf] | None = optional(
        "The API format to render the messages in; default: LCM's own items."
    )
    reserve: Annotated[int, Field(ge=0, le=MOST_TOKENS), WHOLE] = optional(
        "Tokens of the budget to leave for the model's answer."
    )
    as_of: AsOf | None = optional(
        "A past moment: a seq, a time such as 2026-01-31T12:00:00Z, or a run's id; settings are today's.",
    )
    keep_receipt: Flag = optional("Whether to store the receipt, for later comparison with another one.")


class TurnParams(AppendMessagesParams):
    messages: list[IncomingMessage] = Field(description="The new messages, 0 to 1000, oldest first.")
    idempotency_key: Name = optional("A key for the whole turn: repeated with the same key, it stores nothing twice.")
    head_seq: WholeNumber = optional("The message that the first new one follows: the head is first moved there.")
    budget: Tokens | None = optional("The most tokens to give.")
    query: Query | None = optional("What the next turn is about.")
    context_format: Annotated[MessageFormat, OneOf] | None = optional(
        "The API format to render the context in; default: LCM's own items."
    )
    reserve: Annotated[int, Field(ge=0, le=MOST_TOKENS), WHOLE] = optional(
        "Tokens of the budget to leave for the model's answer."
    )
    keep_receipt: Flag = optional("Whether to store the receipt, for later comparison with another one.")


class ListReceiptsParams(ConversationParams):
    cursor: Cursor = optional(NEXT)
    limit: MostListed = optional("The most receipts to list.")


class ReceiptParams(Params):
    receipt_id: Identifier = Field(description="The receipt (rcp_...).")


class CompareReceiptsParams(ReceiptParams):
    other: Identifier = Field(description="The receipt to compare it with, usually a later one.")


class RecallParams(Params):
    conversation_id: ConversationId = optional("The conversation whose own past to recall besides earlier sessions.")
    project: Name = optional("The project whose earlier sessions to recall; default: the conversation's.")
    query: Query | None = optional("What the session is about: earlier sessions that match it come first.")
    budget: Tokens | None = optional("The tokens of the whole prompt; default: the budget of the model.")
    share: Share = optional("The share of the budget that the section may take, above 0 and at most 1.")
    marked: Flag = optional("Whether to mark the text, so that it is not stored when it comes back in an append.")
