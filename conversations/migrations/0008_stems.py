"""Search finds Russian words in most of their forms."""

from django.db import migrations

from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0007_markup")]

    operations = [RunSQLFile("conversations/sql/search.sql")]
