"""Showing a summary is planned once a connection, and not for every summary anew."""

from django.db import migrations

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0009_parts_by_tool")]

    operations = [RunSQLFile(SQL / "summaries_planned_once.sql")]
