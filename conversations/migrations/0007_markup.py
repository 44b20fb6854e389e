"""Search finds words in markup; a repeated append is no change."""

from django.db import migrations

from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0006_folding")]

    operations = [RunSQLFile("conversations/sql/search.sql"), RunSQLFile("conversations/sql/append.sql")]
