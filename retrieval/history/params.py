"""Parameters of the operations on the history of projects."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from compaction.history.types import HistoryKind
from conversations.param_fields import (
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
    limit: MostListed = optional("The most projects to list.")


class TimelineParams(Params):
    project: Name = optional("The project, by its name.")
    conversation_id: ConversationId = optional("A conversation of the project, instead of its name.")
    kind: Kind = optional("Only sessions, arcs or epochs.")
    cursor: Cursor = optional(NEXT)
    limit: MostEntries = optional("The most entries to list.")


class ExpandSessionParams(Params):
    summary_id: Identifier = Field(description="The session, arc or epoch summary (ses_...).")
    depth: Levels = optional("How many levels down, from 1 up; -1 for all.")
    include_messages: Flag = optional("Whether to return all messages below, too.")
    token_cap: Tokens = optional("The most tokens to give.")
    cursor: Cursor | None = optional(NEXT)


class SessionAgoParams(ConversationParams):
    sessions_ago: Annotated[int, Field(ge=1, le=MOST_SESSIONS_AGO), WHOLE] = optional("How many sessions back to go.")


class GrepSessionsParams(Params):
    query: Query = Field(description="What to look for.")
    project: Name = optional("The project; all of the workspace without one.")
    kind: Kind = optional("Only summaries of sessions, arcs or epochs.")
    cursor: Cursor = optional(NEXT)
    limit: MostEntries = optional("The most matches to give.")
