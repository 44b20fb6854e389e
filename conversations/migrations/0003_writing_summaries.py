from django.db import migrations

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0002_how_summaries_were_made"),
    ]

    operations = [RunSQLFile(SQL / "summaries.sql")]
