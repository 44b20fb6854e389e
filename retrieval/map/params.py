"""Parameters of the operations on map runs. Defaults are those of the services."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from conversations.param_fields import (
    NEXT,
    NUMBER,
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
from retrieval.map.submission import (
    MOST_ATTEMPTS,
    MOST_CONCURRENCY,
    MOST_PROMPT_CHARACTERS,
    MOST_TERM_CHARACTERS,
    MOST_TIMEOUT_SECONDS,
)
from retrieval.map.types import MapKind, MapState

MOST_CLAIMED = 100
LONGEST_LEASE = 24 * 3600

# The service checks for empty ones, as the specification prescribes the error.
Term = Annotated[str, Field(max_length=MOST_TERM_CHARACTERS)]
Lease = Annotated[int, Field(ge=1, le=LONGEST_LEASE), WHOLE]


class SubmitMapParams(Params):
    """One prompt and one schema for all items of a file, or for these items."""

    prompt: Annotated[Text, Field(max_length=MOST_PROMPT_CHARACTERS)] = Field(
        description="What to do with an item; {{item}} stands for its JSON."
    )
    output_schema: JsonObject = Field(
        description="The JSON Schema (Draft 2020-12, references only within) of each output."
    )
    kind: Annotated[MapKind, OneOf] = optional(
        "llm: a language model processes the items; agentic: outside agents claim them."
    )
    input_file_id: Identifier = optional("A stored file with the items: a JSON array, or JSON Lines.")
    items: Annotated[list[Any], Field(max_length=MOST_GIVEN_ITEMS)] = optional(
        "The items themselves, instead of a file; conversation_id is required then."
    )
    conversation_id: ConversationId = optional(
        "The conversation that gets a message with ids and counts at the end, and the files."
    )
    model: Annotated[str, Field(max_length=100)] = optional(
        "The language model, such as chat; default: the first that is configured."
    )
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY), WHOLE] = optional("The most items processed at once.")
    max_attempts: Annotated[int, Field(ge=1, le=MOST_ATTEMPTS), WHOLE] = optional(
        "The most answers to one item that may be refused before it fails."
    )
    temperature: Annotated[float, Field(ge=0, le=2), NUMBER] = optional("The temperature; default: the model's own.")
    timeout_s: Annotated[int, Field(ge=1, le=MOST_TIMEOUT_SECONDS), WHOLE] = optional("Seconds to wait for an answer.")
    budget_tokens: Positive = optional("The tokens after which the run pauses.")
    idempotency_key: Name = optional("A repeated key returns the same run; with other contents it is refused.")
    retain: Term = optional("What the caller stays responsible for; required for an agentic run.")
    delegated_scope: Term = optional("The work that is delegated to the agents; required with a grant.")
    kept_work: Term = optional("The work that the caller does not delegate but does itself; required with a grant.")
    grant_id: Identifier = optional("A grant that lets agents read more than their items.")
    read_only: Flag = optional("Whether agents must not change anything outside LCM, which LCM cannot enforce.")
    parent_run_id: Identifier = optional("The map run that this one is a part of.")


class ListMapRunsParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    state: Annotated[MapState, OneOf] = optional("Only runs in this state.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most runs to list.")


class MapRunParams(Params):
    run_id: Identifier = Field(description="The map run (map_...).")


class ListMapItemsParams(MapRunParams):
    state: Annotated[WorkState, OneOf] = optional("Only items in this state.")
    after_position: WholeNumber = optional("Only items after this position.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most items to list.")


class MapOutputParams(MapRunParams):
    after_position: WholeNumber = optional("Only outputs after this position.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most outputs to give.")


class ResumeMapParams(MapRunParams):
    budget_tokens: Positive = optional("Another budget, for a run that has spent its own.")


class ListMapEventsParams(MapRunParams):
    after_seq: WholeNumber = optional("Only events after this seq.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most events to list.")


class ClaimItemsParams(MapRunParams):
    worker: Name = Field(description="A name for the agent, such as its host and process.")
    count: Annotated[int, Field(ge=1, le=MOST_CLAIMED), WHOLE] = optional("The most items to claim.")
    lease_s: Lease = optional("Seconds after which another agent may claim them, unless a heartbeat comes.")


class HeldItemParams(Params):
    item_id: Positive = Field(description="The item's id, from its claim.")
    fence: WholeNumber = Field(description="The fence of the claim.")


class HeartbeatParams(HeldItemParams):
    lease_s: Lease = optional("Seconds from now after which another agent may claim it.")


class CompleteItemParams(HeldItemParams):
    output: Any = optional("The output: any JSON value that matches the run's schema.")
    error: Annotated[Text, Field(max_length=100_000)] = optional("Instead of an output: why there is none.")


class ReleaseItemParams(HeldItemParams):
    """The item to give back."""
