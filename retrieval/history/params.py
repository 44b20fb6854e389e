"""Params of memory across conversations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from compaction.history.types import HistoryKind
from conversations.param_fields import (
    MOST_ON_A_PAGE,
    NEXT,
    WHOLE,
    ConversationId,
    Cursor,
    Flag,
    Identifier,
    Name,
    OneOf,
    Params,
    optional,
)
from conversations.params import ConversationParams
from retrieval.params import Levels, MostListed, Query, Tokens

MOST_ENTRIES = 200
MOST_SESSIONS_AGO = 100_000
Kind = Annotated[HistoryKind, OneOf]
MostEntries = Annotated[int, Field(ge=1, le=MOST_ENTRIES), WHOLE]


class ListProjectsParams(Params):
    cursor: Cursor = optional(NEXT)
    limit: MostListed = optional(MOST_ON_A_PAGE)


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
