"""Appends recognize erased messages by the hash of their idempotency key."""

from django.db import migrations

from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0003_branches")]

    operations = [RunSQLFile("conversations/sql/append.sql")]
