"""Figures of runs and plans add up: the database refuses others from now on.

The constraints are not validated, so that rows of before do not stand in the way. A run that has ended is history: what
it says is set right by a repair, which the audit log records. One that has not ended is no history yet, and what
closes it must be able to write its row, so its figures are set right here.
"""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q

MEND_OPEN_RUNS = """
    UPDATE compaction_runs
    SET tokens_before = greatest(tokens_after, 0) + greatest(tokens_before - tokens_after, 0),
        tokens_after = greatest(tokens_after, 0)
    WHERE outcome = 'running'
      AND (tokens_before < 0 OR tokens_after < 0 OR (tokens_after > tokens_before AND redone_summaries = 0))
"""


class Migration(migrations.Migration):
    dependencies = [("compaction", "0006_row_seals")]

    operations = [
        migrations.RunSQL(MEND_OPEN_RUNS, migrations.RunSQL.noop),
        AddConstraintNotValid(
            "compactionrun",
            models.CheckConstraint(
                condition=Q(tokens_before__gte=0, tokens_after__gte=0)
                & (Q(tokens_after__lte=F("tokens_before")) | Q(redone_summaries__gt=0)),
                name="compaction_runs_add_up",
            ),
        ),
        AddConstraintNotValid(
            "compactionplan",
            models.CheckConstraint(
                condition=Q(tokens_expected__gte=0, tokens_expected__lte=F("tokens_before")),
                name="compaction_plans_add_up",
            ),
        ),
    ]
