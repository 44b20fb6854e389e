"""Large batches of new messages are appended in linear time."""

from django.db import migrations

from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0008_stems")]

    operations = [RunSQLFile("conversations/sql/append.sql")]
