"""Which files a message needs, and files that arrive in chunks."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile


def _foreign_key(to: str, related_name: str, *, restrict: bool = False, null: bool = False) -> models.Field[Any, Any]:
    on_delete = django.db.models.deletion.RESTRICT if restrict else django.db.models.deletion.CASCADE
    return models.ForeignKey(on_delete=on_delete, null=null, related_name=related_name, to=f"conversations.{to}")


def _now() -> models.Func:
    return models.Func(function="clock_timestamp")


MODELS = [
    migrations.CreateModel(
        name="FileReference",
        fields=[
            ("reference_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("part_ordinal", models.IntegerField(null=True)),
            ("field", models.TextField()),
            ("start_at", models.IntegerField(null=True)),
            ("length", models.IntegerField(null=True)),
            ("message", _foreign_key("message", "file_references")),
            ("file", _foreign_key("largefile", "references", restrict=True)),
        ],
        options={
            "db_table": "file_references",
            "indexes": [
                models.Index(fields=["message"], name="file_references_message_idx"),
                models.Index(fields=["file"], name="file_references_file_idx"),
            ],
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(start_at__isnull=True, length__isnull=True)
                    | models.Q(start_at__isnull=False, length__isnull=False, start_at__gte=0, length__gt=0),
                    name="file_references_stand_somewhere",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Upload",
        fields=[
            ("upload_id", models.TextField(primary_key=True, serialize=False)),
            ("file_name", models.TextField(null=True)),
            ("mime_type", models.TextField(null=True)),
            ("byte_size", models.BigIntegerField()),
            ("chunk_bytes", models.IntegerField()),
            ("content_hash", models.BinaryField(null=True)),
            ("created_at", models.DateTimeField(db_default=_now())),
            ("touched_at", models.DateTimeField(db_default=_now())),
            ("conversation", _foreign_key("conversation", "uploads")),
            ("file", _foreign_key("largefile", "+", null=True)),
        ],
        options={
            "db_table": "uploads",
            "indexes": [
                models.Index(fields=["conversation"], name="uploads_conversation_idx"),
                models.Index(fields=["touched_at"], name="uploads_touched_idx"),
            ],
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(byte_size__gte=0, chunk_bytes__gt=0), name="uploads_have_a_size"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="UploadChunk",
        fields=[
            ("upload_chunk_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("number", models.IntegerField()),
            ("content_hash", models.BinaryField()),
            ("upload", _foreign_key("upload", "chunks")),
        ],
        options={
            "db_table": "upload_chunks",
            "constraints": [
                models.UniqueConstraint(fields=["upload", "number"], name="upload_chunks_are_kept_once"),
                models.CheckConstraint(condition=models.Q(number__gte=0), name="upload_chunks_are_numbered_from_zero"),
            ],
        },
    ),
]


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0004_trust"),
    ]

    operations = [RunSQLFile(SQL / "uploads.sql", state_operations=MODELS)]
