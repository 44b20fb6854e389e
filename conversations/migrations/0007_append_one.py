from django.db import migrations

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0006_acts_by_target"),
    ]

    operations = [RunSQLFile(SQL / "append_one.sql")]
