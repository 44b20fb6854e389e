from django.db import migrations

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0007_append_one"),
    ]

    operations = [RunSQLFile(SQL / "summaries_by_index.sql")]
