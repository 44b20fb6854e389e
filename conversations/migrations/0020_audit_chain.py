"""The audit log has a hash chain of its own; the acts that are there already are chained."""

import django.db.models.deletion
from django.db import migrations, models

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile

MODELS = [
    migrations.CreateModel(
        name="AuditLink",
        fields=[
            ("number", models.BigIntegerField(primary_key=True, serialize=False)),
            ("chain_hash", models.BinaryField()),
            (
                "entry",
                models.OneToOneField(
                    db_column="audit_id",
                    on_delete=django.db.models.deletion.RESTRICT,
                    related_name="link",
                    to="conversations.auditentry",
                ),
            ),
        ],
        options={
            "db_table": "audit_chain",
            "constraints": [
                models.CheckConstraint(condition=models.Q(number__gte=1), name="audit_chain_counts_from_one")
            ],
        },
    ),
    migrations.CreateModel(
        name="AuditHead",
        fields=[
            ("head_id", models.SmallIntegerField(db_default=1, default=1, primary_key=True, serialize=False)),
            ("number", models.BigIntegerField(db_default=0)),
            ("chain_hash", models.BinaryField(db_default=b"")),
        ],
        options={
            "db_table": "audit_head",
            "constraints": [models.CheckConstraint(condition=models.Q(head_id=1), name="audit_head_is_one_row")],
        },
    ),
]


class Migration(migrations.Migration):
    dependencies = [("conversations", "0019_row_seals")]

    operations = [RunSQLFile(SQL / "audit_chain.sql", state_operations=MODELS)]
