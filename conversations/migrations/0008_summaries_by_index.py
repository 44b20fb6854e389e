from django.db import migrations

from conversations.sql import HERE as SQL
from conversations.sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0007_append_one"),
    ]

    operations = [RunSQLFile(SQL / "summaries_by_index.sql")]
