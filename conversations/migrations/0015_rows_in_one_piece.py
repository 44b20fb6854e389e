"""Texts of up to some kilobytes stay in their row with what search sees of them: one page is read, not four.

PostgreSQL would move the larger of both out of a row of more than 2 kB, where an index leads to it in pieces of 2 kB.
It counts for what is written from now on; what was written before is read as it is.
"""

from django.db import migrations

_MOST_IN_A_PAGE = 8160


class Migration(migrations.Migration):
    dependencies = [("conversations", "0014_words_by_place")]

    operations = [
        migrations.RunSQL(
            f"ALTER TABLE {table} SET (toast_tuple_target = {_MOST_IN_A_PAGE})",
            f"ALTER TABLE {table} RESET (toast_tuple_target)",
        )
        for table in ("messages", "summaries")
    ]
