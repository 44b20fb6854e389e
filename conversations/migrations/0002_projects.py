"""Projects, and the parents of conversations."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

from conversations.run_sql import SealRows

# The database keeps a conversation in the workspace of its project and of its parent.
SHARED_WORKSPACES = """
ALTER TABLE conversations
  ADD CONSTRAINT conversations_share_the_workspace_of_their_project
    FOREIGN KEY (project_id, workspace_id) REFERENCES projects (project_id, workspace_id),
  ADD CONSTRAINT conversations_share_the_workspace_of_their_parent
    FOREIGN KEY (parent_id, workspace_id) REFERENCES conversations (conversation_id, workspace_id);
"""


class Migration(migrations.Migration):
    dependencies = [("conversations", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Project",
            fields=[
                ("project_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.TextField()),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="projects",
                        to="conversations.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "projects",
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "name"), name="projects_have_one_name_per_workspace"),
                    models.UniqueConstraint(fields=("project_id", "workspace"), name="projects_are_in_one_workspace"),
                    models.CheckConstraint(condition=~Q(name=""), name="projects_have_a_name"),
                ],
            },
        ),
        migrations.AddField(
            "conversation",
            "project",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="conversations",
                to="conversations.project",
            ),
        ),
        migrations.AddField(
            "conversation",
            "parent",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="children",
                to="conversations.conversation",
            ),
        ),
        migrations.AddField(
            "conversation",
            "parent_link",
            models.TextField(choices=[("subagent", "subagent"), ("fork", "fork")], null=True),
        ),
        migrations.AddConstraint(
            "conversation",
            models.UniqueConstraint(fields=("conversation_id", "workspace"), name="conversations_are_in_one_workspace"),
        ),
        migrations.AddConstraint(
            "conversation",
            models.CheckConstraint(
                condition=Q(parent__isnull=True, parent_link__isnull=True)
                | (Q(parent_link__in=["subagent", "fork"]) & ~Q(parent=F("conversation_id"))),
                name="conversations_say_what_their_parent_is",
            ),
        ),
        migrations.RunSQL(SHARED_WORKSPACES, migrations.RunSQL.noop),
        SealRows("projects", "project_id workspace_id name created_at"),
        SealRows(
            "conversations",
            "conversation_id workspace_id session_id title created_at metadata overrides project_id parent_id"
            " parent_link",
        ),
    ]
