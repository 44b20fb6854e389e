import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0004_trust"),
        ("lcmsite", "0002_api_keys"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("membership_id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "role",
                    models.TextField(choices=[("reader", "reader"), ("operator", "operator"), ("admin", "admin")]),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="conversations.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "memberships",
                "constraints": [
                    models.UniqueConstraint(
                        fields=["user", "workspace"], name="memberships_are_one_for_each_workspace"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(role__in=["reader", "operator", "admin"]),
                        name="memberships_have_roles_that_there_are",
                    ),
                ],
            },
        ),
    ]
