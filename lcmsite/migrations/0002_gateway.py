"""The exchanges of the gateway."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0003_branches"),
        ("lcmsite", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="GatewayExchange",
            fields=[
                ("exchange_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("exchange_key", models.UUIDField(unique=True)),
                ("surface", models.TextField()),
                ("side", models.TextField(default="")),
                ("model", models.TextField(default="")),
                ("request_chain", models.BinaryField()),
                ("request_seq", models.BigIntegerField()),
                ("answer_chain", models.BinaryField(null=True)),
                ("answer_seq", models.BigIntegerField(null=True)),
                ("response_id", models.TextField(null=True)),
                ("status", models.SmallIntegerField(null=True)),
                ("is_complete", models.BooleanField(default=False)),
                ("error", models.TextField(default="")),
                ("tokens_in", models.BigIntegerField(null=True)),
                ("tokens_out", models.BigIntegerField(null=True)),
                ("milliseconds", models.IntegerField(null=True)),
                ("received_at", models.DateTimeField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="conversations.conversation"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="conversations.workspace"
                    ),
                ),
            ],
            options={
                "db_table": "gateway_exchanges",
                "indexes": [
                    models.Index(fields=["workspace", "request_chain"], name="gateway_request_chain_idx"),
                    models.Index(fields=["workspace", "answer_chain"], name="gateway_answer_chain_idx"),
                    models.Index(fields=["workspace", "response_id"], name="gateway_response_idx"),
                ],
            },
        ),
    ]
