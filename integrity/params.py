"""Params of checks, repairs, retention, erasures and the audit log."""

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
        "full: everything. incremental: what has changed since it was last found clean, and samples of the rest."
    )
    with_plan: Flag = optional("Plan repairs, if anything is found.")
    background: Flag = optional("Queue the check for a worker and return the scan at once.")


class NoParams(Params):
    """No params: the operation covers everything that the caller may see."""


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
        "A stored file with a ledger, from which to restore what was damaged or lost."
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
        description="The numbers of the steps to approve."
    )
    refused: Annotated[list[Positive], Field(max_length=50_000)] = optional("The numbers of the steps to refuse.")


class ListQuarantinesParams(Params):
    conversation_id: ConversationId = optional("The conversation; all of the workspace without one.")
    released: Flag = optional("Whether to include released quarantines.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(_SHOWN)


class QuarantineParams(Params):
    id: Identifier = Field(description="The message, summary, part or file.")
    reason: Annotated[Text, Field(max_length=500)] = Field(description="The reason, kept for later readers.")


class ReadQuarantinedParams(Params):
    id: Identifier = Field(description="The quarantined message, summary, part or file.")


class ReleaseParams(Params):
    quarantine_id: Positive = Field(description="The quarantine.")


class SetRetentionParams(Params):
    cold_after_days: Annotated[int, Field(ge=1, le=MOST_DAYS), WHOLE] | None = optional(
        "Days without use after which texts go cold; the site's default if not given."
    )


class PreviewErasureParams(ConversationParams):
    from_seq: Positive | None = optional("The first message of a range.")
    to_seq: Positive | None = optional("The last message of the range.")
    message_ids: Annotated[list[MessageId], Field(max_length=MOST_MESSAGES)] = optional(
        "Messages by their ids, in addition to the range."
    )
    file_ids: Annotated[list[Identifier], Field(max_length=MOST_FILES)] = optional(
        "Files by their ids, even if messages refer to them."
    )


class EraseParams(Params):
    erasure_id: Identifier = Field(description="The previewed erasure (era_...).")
    confirmation: Annotated[Text, Field(max_length=500)] = Field(
        description="The confirmation phrase shown by the preview, typed exactly."
    )


class ListActsParams(Params):
    conversation_id: ConversationId | None = optional("Only acts on this conversation.")
    act: Annotated[Act, OneOf] | None = optional("Only acts of this kind.")
    target: Identifier | None = optional("Only acts on this target, such as msg_12, repair_... or key 7.")
    cursor: Cursor = optional(NEXT)
    limit: Annotated[int, Field(ge=1, le=MOST_ACTS), WHOLE] = optional("The most acts to list.")
