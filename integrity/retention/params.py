"""What a caller may say to retention, to an erasure and to the audit log."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from conversations.audit import Act
from conversations.param_fields import (
    NEXT,
    WHOLE,
    ConversationId,
    Cursor,
    Identifier,
    MessageId,
    OneOf,
    Params,
    Positive,
    Text,
    optional,
)
from conversations.params import ConversationParams
from integrity.policy import MOST_DAYS
from integrity.retention.erasure import MOST_NAMED

MOST_FILES = 1_000
MOST_ACTS = 1_000


class ArchiveParams(ConversationParams):
    """The conversation whose texts are to move to the cold tier."""


class ThawParams(ConversationParams):
    """The conversation whose texts are to come back."""


class RetentionParams(Params):
    """The workspace of the caller."""


class SetRetentionParams(Params):
    cold_after_days: Annotated[int, Field(ge=1, le=MOST_DAYS), WHOLE] | None = optional(
        "Days without use after which texts go cold; left out, the site's default holds."
    )


class StorageParams(Params):
    """The workspace of the caller."""


class PreviewErasureParams(ConversationParams):
    from_seq: Positive | None = optional("The first message of a range.")
    to_seq: Positive | None = optional("The last message of the range.")
    message_ids: Annotated[list[MessageId], Field(max_length=MOST_NAMED)] = optional(
        "Messages by their ids, beside the range."
    )
    file_ids: Annotated[list[Identifier], Field(max_length=MOST_FILES)] = optional(
        "Files by their ids, whether or not messages need them."
    )


class EraseParams(Params):
    erasure_id: Identifier = Field(description="The previewed erasure (era_...).")
    confirmation: Annotated[Text, Field(max_length=500)] = Field(
        description="What the preview asks to be typed, letter by letter."
    )


class ListActsParams(Params):
    conversation_id: ConversationId | None = optional("Only what was done to this one.")
    act: Annotated[Act, OneOf] | None = optional("Only acts of this kind.")
    target: Identifier | None = optional("Only what was done to this: msg_12, repair_..., key 7.")
    cursor: Cursor = optional(NEXT)
    limit: Annotated[int, Field(ge=1, le=MOST_ACTS), WHOLE] = optional("The most acts to list.")
