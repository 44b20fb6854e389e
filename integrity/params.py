"""Parameters of checks, repairs, retention, erasures and the audit log."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from conversations.audit import Act
from conversations.param_fields import (
    NEXT,
    WHOLE,
    ConversationId,
    Cursor,
    Flag,
    Identifier,
    Limit,
    MessageId,
    OneOf,
    Params,
    Positive,
    Text,
    optional,
)
from conversations.params import ConversationParams
from integrity.policy import MOST_DAYS
from integrity.types import PlanState, ScanMode

_SHOWN = "The most to list."
MOST_MESSAGES = 10_000
MOST_FILES = 1_000
MOST_ACTS = 1_000


class CheckParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    extent: Annotated[ScanMode, OneOf] = optional(
        "full: everything. incremental: what has changed since it was last found clean, with samples."
    )
    with_plan: Flag = optional("Plan repairs, if anything is found.")
    background: Flag = optional("Leave the check to a worker and answer at once with the scan.")


class NoParams(Params):
    """Nothing: it is about all that the caller sees."""


class ScanParams(Params):
    scan_id: Positive = Field(description="The scan.")


class ListReportsParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    extent: Annotated[ScanMode, OneOf] = optional("Only checks of this extent.")
    whole: Flag = optional("Only checks of the whole workspace, none of a single conversation.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(_SHOWN)


class ReportParams(Params):
    report_id: Identifier = Field(description="The report.")
    code: Identifier | None = optional("Only the findings of this invariant.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(_SHOWN)


class PlanRepairsParams(Params):
    report_id: Identifier = Field(description="The report.")
    ledger_file_id: Identifier | None = optional(
        "The stored file with a ledger from which to put back what was damaged or lost."
    )


class RepairParams(Params):
    repair_id: Identifier = Field(description="The repair plan.")


class ListRepairsParams(Params):
    report_id: Identifier = optional("The report; those of all reports without one.")
    state: Annotated[PlanState, OneOf] = optional("Only plans in this state.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(_SHOWN)


class ApproveRepairsParams(RepairParams):
    ordinals: Annotated[list[Positive], Field(max_length=50_000)] = Field(
        description="The steps that may be carried out."
    )
    refused: Annotated[list[Positive], Field(max_length=50_000)] = optional("The steps that must not be carried out.")


class ListQuarantinesParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    released: Flag = optional("Also what is no longer withheld.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(_SHOWN)


class QuarantineParams(Params):
    id: Identifier = Field(description="The message, summary, part or file.")
    reason: Annotated[Text, Field(max_length=500)] = Field(description="Why, for those who come later.")


class ReadQuarantinedParams(Params):
    id: Identifier = Field(description="The quarantined message, summary, part or file.")


class ReleaseParams(Params):
    quarantine_id: Positive = Field(description="The quarantine.")


class SetRetentionParams(Params):
    cold_after_days: Annotated[int, Field(ge=1, le=MOST_DAYS), WHOLE] | None = optional(
        "Days without use after which texts go cold; left out, the site's default holds."
    )


class PreviewErasureParams(ConversationParams):
    from_seq: Positive | None = optional("The first message of a range.")
    to_seq: Positive | None = optional("The last message of the range.")
    message_ids: Annotated[list[MessageId], Field(max_length=MOST_MESSAGES)] = optional(
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
