"""A session summary without the first or last message of its range is refused."""

from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("compaction", "0003_history")]

    operations = [
        migrations.RemoveConstraint(
            model_name="sessionsummary", name="session_summaries_cover_a_conversation_or_a_project"
        ),
        migrations.AddConstraint(
            model_name="sessionsummary",
            constraint=models.CheckConstraint(
                condition=Q(
                    depth=0,
                    conversation__isnull=False,
                    first_seq__isnull=False,
                    last_seq__isnull=False,
                    first_seq__gte=1,
                    last_seq__gte=F("first_seq"),
                )
                | Q(
                    depth__gt=0,
                    conversation__isnull=True,
                    first_seq__isnull=True,
                    last_seq__isnull=True,
                    project__isnull=False,
                ),
                name="session_summaries_cover_a_conversation_or_a_project",
            ),
        ),
    ]
