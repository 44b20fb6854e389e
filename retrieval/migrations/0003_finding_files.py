from pathlib import Path

from django.db import migrations

from conversations.run_sql import RunSQLFile

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0002_grants"),
        ("conversations", "0003_writing_summaries"),
    ]

    operations = [RunSQLFile(SQL / "files.sql")]
