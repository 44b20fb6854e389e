from django.db import migrations

from conversations.sql import HERE as SQL
from conversations.sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0002_how_summaries_were_made"),
    ]

    operations = [RunSQLFile(SQL / "summaries.sql")]
