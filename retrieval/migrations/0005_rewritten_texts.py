"""Triggers that remove the vectors of rewritten texts, too."""

from django.db import migrations

from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0004_semantic")]

    operations = [RunSQLFile("retrieval/sql/semantic/triggers.sql")]
