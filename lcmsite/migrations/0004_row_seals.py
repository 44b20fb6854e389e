"""Keys and memberships are sealed: what they allow, not when a key was last used."""

from django.db import migrations

from conversations.run_sql import SealRows


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0019_row_seals"),
        ("lcmsite", "0003_members"),
    ]

    operations = [
        SealRows("api_keys", "api_key_id workspace_id name prefix key_hash scopes created_at expires_at revoked_at"),
        SealRows("memberships", "membership_id user_id workspace_id role created_at"),
    ]
