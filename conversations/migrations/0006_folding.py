"""Search folds more letters and marks beyond ASCII, also in stored texts."""

from django.db import migrations

from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0005_punctuation")]

    operations = [RunSQLFile("conversations/sql/search.sql")]
