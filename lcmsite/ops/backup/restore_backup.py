"""The way back: a backup into a database that holds nothing yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import psycopg
from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Unavailable
from conversations.scope import Scope
from lcmsite.ops.backup.create_backup import BackupReport
from lcmsite.ops.backup.digest import holdings
from lcmsite.ops.backup.manifest import DUMP, FILES, Manifest
from lcmsite.ops.backup.programs import Database

_OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
"""
_EMPTY = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"


def restore(directory: Path, *, scope: Scope) -> BackupReport:
    """Fill LCM's database and storage from a backup, and bring its tables up to date.

    Nothing is touched before every piece was found whole. Raises Invalid for what is no whole backup; Conflict if the
    database holds conversations, or if anybody else is connected; Unavailable if PostgreSQL refuses, or if what was
    restored is not what was backed up.
    """
    directory = directory.absolute()
    manifest = Manifest.read(directory)
    manifest.require_whole(directory)
    connection.ensure_connection()
    database = Database.of(cast("psycopg.Connection[Any]", connection.connection))
    _make_room(database)
    database.load(directory / DUMP)
    _restore_files(directory, manifest)
    with database.connect() as restored:
        found = holdings(restored)
    if found != manifest.holdings:
        raise Unavailable("What was restored is not what was backed up.")
    try:
        call_command("migrate", verbosity=0)
    except CommandError as refusal:
        raise Conflict(str(refusal)) from refusal
    with transaction.atomic():
        AuditLog(scope).record(Act.RESTORE_BACKUP, target=str(directory), detail={"digest": found.digest})
    return BackupReport(
        directory=str(directory),
        bytes=sum(piece.bytes for piece in manifest.pieces),
        holdings=found,
        is_verified=True,
        damaged_files=manifest.damaged_files,
    )


def _make_room(database: Database) -> None:
    """Empty tables give way; any conversation does not."""
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    with database.connect() as target:
        has_tables = target.execute("SELECT to_regclass('conversations') IS NOT NULL").fetchone() == (True,)
        if has_tables and target.execute("SELECT EXISTS (SELECT FROM conversations)").fetchone() == (True,):
            raise Conflict(
                "This database holds conversations: a backup replaces nothing; restore it into an empty one."
            )
        if target.execute(_OTHERS).fetchone() != (0,):
            raise Conflict("Somebody else uses this database: stop LCM (`lcm up`) first, then restore.")
        target.execute(_EMPTY)


def _restore_files(directory: Path, manifest: Manifest) -> None:
    for piece in manifest.pieces:
        if not piece.path.startswith(f"{FILES}/"):
            continue
        uri = piece.path.removeprefix(f"{FILES}/")
        try:
            if not default_storage.exists(uri):
                with (directory / piece.path).open("rb") as source:
                    default_storage.save(uri, File(source))
        except OSError as refusal:
            raise Unavailable(f"The file {uri} cannot be stored: {refusal.strerror or refusal}.") from refusal
