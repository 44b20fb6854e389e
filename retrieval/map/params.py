"""Params of map runs and their items; defaults are those of the services."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

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
    JsonObject,
    Limit,
    Name,
    OneOf,
    Params,
    Positive,
    Text,
    WholeNumber,
    optional,
)
from conversations.work.queue import WorkState
from retrieval.map.input_items import MOST_GIVEN_ITEMS
from retrieval.map.item_queue import LONGEST_LEASE
from retrieval.map.submission import (
    MOST_ATTEMPTS,
    MOST_CONCURRENCY,
    MOST_PROMPT_CHARACTERS,
    MOST_TERM_CHARACTERS,
    MOST_TIMEOUT_SECONDS,
)
from retrieval.map.types import MapKind, MapState

MOST_CLAIMED = 100

# May be empty here: the service refuses an empty one, in the specification's words.
Term = Annotated[str, Field(max_length=MOST_TERM_CHARACTERS)]
Lease = Annotated[int, Field(ge=1, le=LONGEST_LEASE), WHOLE]


class SubmitMapParams(Params):
    """One prompt and one schema for all items of a file, or for these items."""

    prompt: Annotated[Text, Field(max_length=MOST_PROMPT_CHARACTERS)] = Field(
        description="The instructions for each item; {{item}} is replaced by the item's JSON."
    )
    output_schema: JsonObject = Field(
        description="The JSON Schema (Draft 2020-12, without external references) of each output."
    )
    kind: Annotated[MapKind, OneOf] = optional(
        "llm: a language model processes the items; agentic: outside agents claim them."
    )
    input_file_id: Identifier = optional("A stored file with the items: a JSON array, or JSON Lines.")
    items: Annotated[list[Any], Field(max_length=MOST_GIVEN_ITEMS)] = optional(
        "The items themselves, instead of a file. They require conversation_id."
    )
    conversation_id: ConversationId = optional(
        "The conversation that gets the files and, at the end, a message with their ids and counts."
    )
    model: Annotated[str, Field(max_length=100)] = optional(
        "The language model, such as chat. Default: the first one that is configured."
    )
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY), WHOLE] = optional("Maximum items processed at once.")
    max_attempts: Annotated[int, Field(ge=1, le=MOST_ATTEMPTS), WHOLE] = optional(
        "The number of attempts after which an item fails."
    )
    temperature: Annotated[float, Field(ge=0, le=2), NUMBER] = optional(
        "The temperature for the model. Default: the model's own."
    )
    timeout_s: Annotated[int, Field(ge=1, le=MOST_TIMEOUT_SECONDS), WHOLE] = optional("Seconds to wait for the model.")
    budget_tokens: Positive = optional("The token budget of the run; the run pauses when it is spent.")
    idempotency_key: Name = optional("The same key with the same params returns the same run; other params fail.")
    retain: Term = optional("What the caller stays responsible for, in words. Required for an agentic run.")
    delegated_scope: Term = optional("The work handed over to agents, in words. Required with a grant.")
    kept_work: Term = optional("The work that the caller still does itself, in words. Required with a grant.")
    grant_id: Identifier = optional("The grant that lets agents read more than their items.")
    read_only: Flag = optional("Whether agents must change nothing outside LCM; LCM cannot enforce it.")
    parent_run_id: Identifier = optional("The map run that this run is a part of.")


class ListMapRunsParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    state: Annotated[MapState, OneOf] = optional("Only runs in this state.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class MapRunParams(Params):
    run_id: Identifier = Field(description="The map run (map_...).")


class ListMapItemsParams(MapRunParams):
    state: Annotated[WorkState, OneOf] = optional("Only items in this state.")
    after_position: WholeNumber = optional("Only items after this position.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class MapOutputParams(MapRunParams):
    after_position: WholeNumber = optional("Only outputs after this position.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class ResumeMapParams(MapRunParams):
    budget_tokens: Positive = optional("A new token budget, for a run that has spent its budget.")


class ListMapEventsParams(MapRunParams):
    after_seq: WholeNumber = optional("Only events after this seq.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class ClaimItemsParams(MapRunParams):
    worker: Name = Field(description="A name that the claiming agent chooses for itself.")
    count: Annotated[int, Field(ge=1, le=MOST_CLAIMED), WHOLE] = optional("Maximum number of items to claim.")
    lease_s: Lease = optional("The lease: seconds until others may claim the items, unless a heartbeat extends it.")


class HeldItemParams(Params):
    item_id: Positive = Field(description="The item's id, from its claim.")
    fence: WholeNumber = Field(description="The item's fence number, from its claim.")


class HeartbeatParams(HeldItemParams):
    lease_s: Lease = optional("The new lease: seconds from now until others may claim the item.")


class CompleteItemParams(HeldItemParams):
    output: Any = optional("The output: any JSON value that matches the run's schema.")
    error: Annotated[Text, Field(max_length=100_000)] = optional("Instead of an output: why there is none.")
