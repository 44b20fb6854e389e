"""Params of checks, repairs, retention, erasures and the audit log."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from conversations.audit import Act
from conversations.param_fields import (
    MOST_ON_A_PAGE,
    NEXT,
    ONLY_THIS,
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

MOST_MESSAGES = 10_000
MOST_FILES = 1_000
MOST_ACTS = 1_000


class CheckParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    extent: Annotated[ScanMode, OneOf] = optional(
        "full: everything. incremental: conversations that have changed since they were last found clean, and samples."
    )
    with_plan: Flag = optional("Plan repairs, if anything is found.")
    background: Flag = optional("Queue the check for a background worker and return the scan at once.")


class ScanParams(Params):
    scan_id: Positive = Field(description="The id of the scan, a background check.")


class ListReportsParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    extent: Annotated[ScanMode, OneOf] = optional("Only checks of this extent.")
    whole: Flag = optional("Only checks of the whole workspace, not of single conversations.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class ReportParams(Params):
    report_id: Identifier = Field(description="The check report (report_...).")
    code: Identifier | None = optional("Only the findings of this invariant.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class PlanRepairsParams(Params):
    report_id: Identifier = Field(description="The check report (report_...).")
    ledger_file_id: Identifier | None = optional(
        "A stored file that holds a ledger, from which to restore damaged or lost texts."
    )


class RepairParams(Params):
    repair_id: Identifier = Field(description="The repair plan (repair_...).")


class ListRepairsParams(Params):
    report_id: Identifier = optional("Only plans for this check report. Default: plans for all reports.")
    state: Annotated[PlanState, OneOf] = optional("Only plans in this state.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class ApproveRepairsParams(RepairParams):
    ordinals: Annotated[list[Positive], Field(max_length=50_000)] = Field(
        description="The numbers of the steps to approve."
    )
    refused: Annotated[list[Positive], Field(max_length=50_000)] = optional("The numbers of the steps to refuse.")


class ListQuarantinesParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    released: Flag = optional("Whether to include released quarantines.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class QuarantineParams(Params):
    id: Identifier = Field(description="The message, summary, part or file to withhold.")
    reason: Annotated[Text, Field(max_length=500)] = Field(description="The reason; later readers of the list see it.")


class ReadQuarantinedParams(Params):
    id: Identifier = Field(description="The quarantined message, summary, part or file.")


class ReleaseParams(Params):
    quarantine_id: Positive = Field(description="The quarantine's id.")


class SetRetentionParams(Params):
    cold_after_days: Annotated[int, Field(ge=1, le=MOST_DAYS), WHOLE] | None = optional(
        "Days without use after which texts move to the cold tier. Default: the site's setting."
    )


class PreviewErasureParams(ConversationParams):
    from_seq: Positive | None = optional("The seq of the first message of a range.")
    to_seq: Positive | None = optional("The seq of the last message of the range.")
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
    conversation_id: ConversationId | None = optional("Only entries about this conversation.")
    act: Annotated[Act, OneOf] | None = optional("Only entries about this kind of operation.")
    target: Identifier | None = optional("Only entries about this target, such as msg_12, repair_... or key 7.")
    cursor: Cursor = optional(NEXT)
    limit: Annotated[int, Field(ge=1, le=MOST_ACTS), WHOLE] = optional(MOST_ON_A_PAGE)
