"""Reports, repairs and erasures are sealed."""

from django.db import migrations

from conversations.run_sql import SealRows


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0019_row_seals"),
        ("integrity", "0002_retention"),
    ]

    operations = [
        SealRows(
            "integrity_reports",
            "report_id workspace_id conversation_id mode started_at finished_at conversations_checked messages_checked"
            " counts costs is_clean unchecked",
        ),
        SealRows("integrity_findings", "finding_id report_id code severity conversation_id target detail"),
        SealRows(
            "repair_plans",
            "plan_id report_id created_at state applied_at undone_at ledger_file_id unplanned outcome",
        ),
        SealRows(
            "repair_steps",
            "step_id plan_id ordinal operation conversation_id target before after risk reversible why codes state"
            " approved_by approved_at applied_at undo",
        ),
        SealRows(
            "erasures",
            "erasure_id conversation_id requested_by requested_at expires_at message_ids file_ids is_whole fingerprint"
            " confirmation act_id bytes_left",
        ),
    ]
