"""API keys, memberships, and the tables of Huey and Django's database cache."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from conversations.run_sql import SealRows

# The tables that huey 3.5 would create itself; a test compares them with those of the installed huey.
QUEUE_TABLES = """
CREATE TABLE huey_kv (
    queue text NOT NULL, key text NOT NULL, value bytea NOT NULL, PRIMARY KEY (queue, key)
);
CREATE TABLE huey_schedule (
    id bigserial PRIMARY KEY, queue text NOT NULL, data bytea NOT NULL, timestamp double precision NOT NULL
);
CREATE INDEX huey_schedule_queue_timestamp ON huey_schedule (queue, timestamp);
CREATE TABLE huey_task (
    id bigserial PRIMARY KEY, queue text NOT NULL, data bytea NOT NULL, priority double precision NOT NULL DEFAULT 0.0
);
CREATE INDEX huey_task_queue_priority_id ON huey_task (queue, priority DESC, id);
CREATE TABLE huey_counter (
    queue text NOT NULL, key text NOT NULL, value bigint NOT NULL DEFAULT 0, PRIMARY KEY (queue, key)
);
"""

# The table that `createcachetable` would create, for request counts of one minute each.
CACHE_TABLE = """
CREATE TABLE lcm_cache (
    cache_key varchar(255) NOT NULL PRIMARY KEY, value text NOT NULL, expires timestamptz NOT NULL
);
CREATE INDEX lcm_cache_expires ON lcm_cache (expires);
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("conversations", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(QUEUE_TABLES, migrations.RunSQL.noop),
        migrations.RunSQL(CACHE_TABLE, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("api_key_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.TextField()),
                ("prefix", models.TextField(db_index=True)),
                ("key_hash", models.BinaryField(unique=True)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(choices=[("read", "read"), ("write", "write"), ("admin", "admin")]),
                        size=None,
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_keys",
                        to="conversations.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "api_keys",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("scopes__contained_by", ["read", "write", "admin"]), ("scopes__len__gte", 1)
                        ),
                        name="api_keys_have_scopes_that_there_are",
                    )
                ],
            },
        ),
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
                        fields=("user", "workspace"), name="memberships_are_one_for_each_workspace"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["reader", "operator", "admin"])),
                        name="memberships_have_roles_that_there_are",
                    ),
                ],
            },
        ),
        SealRows("api_keys", "api_key_id workspace_id name prefix key_hash scopes created_at expires_at revoked_at"),
        SealRows("memberships", "membership_id user_id workspace_id role created_at"),
    ]
