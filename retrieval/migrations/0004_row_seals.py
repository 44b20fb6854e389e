"""Receipts and grants are sealed."""

from django.db import migrations

from conversations.run_sql import SealRows


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0019_row_seals"),
        ("retrieval", "0003_finding_files"),
    ]

    operations = [
        # Not `created_at`: the same context, assembled again, moves it.
        SealRows("assembly_receipts", "receipt_id conversation_id figures lines"),
        SealRows(
            "grants",
            "grant_id workspace_id question item_ids depth token_cap tokens_used reads created_at expires_at revoked_at"
            " refusals",
        ),
    ]
