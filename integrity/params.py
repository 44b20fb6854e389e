"""What a caller may say to the integrity checker, and of repairs."""

from __future__ import annotations

from conversations.param_fields import Choice, ConversationId, Flag, Several, Text, WholeNumber
from conversations.params import Params
from integrity.types import PlanState, ScanMode

_SHOWN = "The most to list."


class CheckParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")
    extent = Choice(
        choices=[mode.value for mode in ScanMode],
        required=False,
        help_text="full: everything. incremental: what has changed since it was last found clean, with samples.",
    )
    with_plan = Flag(required=False, help_text="Plan repairs, if anything is found.")
    background = Flag(required=False, help_text="Leave the check to a worker and answer at once with the scan.")


class IntegrityStateParams(Params):
    """Nothing: it is the state of all that the caller sees."""


class ScanParams(Params):
    scan_id = WholeNumber(min_value=1, help_text="The scan.")


class ListReportsParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")
    extent = Choice(choices=[mode.value for mode in ScanMode], required=False, help_text="Only checks of this extent.")
    whole = Flag(required=False, help_text="Only checks of the whole workspace, none of a single conversation.")
    before_report = Text(required=False, max_length=200, help_text="Only reports older than this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text=_SHOWN)


class ReportParams(Params):
    report_id = Text(max_length=200, help_text="The report.")
    code = Text(required=False, allow_null=True, max_length=200, help_text="Only the findings of this invariant.")
    after_id = WholeNumber(required=False, min_value=0, help_text="Only findings behind this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text=_SHOWN)


class PlanRepairsParams(Params):
    report_id = Text(max_length=200, help_text="The report.")
    ledger_file_id = Text(
        required=False,
        allow_null=True,
        max_length=200,
        help_text="The stored file with a ledger from which to put back what was damaged or lost.",
    )


class RepairParams(Params):
    repair_id = Text(max_length=200, help_text="The repair plan.")


class ListRepairsParams(Params):
    report_id = Text(required=False, max_length=200, help_text="The report; those of all reports without one.")
    state = Choice(choices=[state.value for state in PlanState], required=False, help_text="Only plans in this state.")
    before_plan = Text(required=False, max_length=200, help_text="Only plans older than this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text=_SHOWN)


class ApproveRepairsParams(RepairParams):
    ordinals = Several(
        child=WholeNumber(min_value=1), max_length=50_000, help_text="The steps that may be carried out."
    )
    refused = Several(
        child=WholeNumber(min_value=1),
        required=False,
        max_length=50_000,
        help_text="The steps that must not be carried out.",
    )


class ListQuarantinesParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")
    released = Flag(required=False, help_text="Also what is no longer withheld.")
    before_id = WholeNumber(required=False, help_text="Only what was withheld before this quarantine.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text=_SHOWN)


class QuarantineParams(Params):
    id = Text(max_length=200, help_text="The message, summary, part or file.")
    reason = Text(max_length=500, help_text="Why, for those who come later.")


class ReleaseParams(Params):
    quarantine_id = WholeNumber(min_value=1, help_text="The quarantine.")
