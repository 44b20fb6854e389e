"""Search separates words at NUL and at punctuation beyond ASCII."""

from django.db import migrations

from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0004_erased_keys")]

    operations = [RunSQLFile("conversations/sql/search.sql")]
