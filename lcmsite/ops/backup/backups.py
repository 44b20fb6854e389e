"""Create a backup, verify it by a trial restore, and restore it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import psycopg
from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid, Unavailable
from conversations.files.storage import storing, sync
from conversations.models import LargeFile
from conversations.scope import Scope
from conversations.sql import snapshot
from lcmsite.catalogue.problems import FINDINGS_EXIT_CODE
from lcmsite.ops.backup.backup_leftovers import sweep_databases, sweep_directories, trial_database, unfinished
from lcmsite.ops.backup.manifest import (
    DUMP,
    FILES,
    Holdings,
    Manifest,
    Piece,
    count_holdings,
    create_private,
    piece_of,
    stored_files,
)
from lcmsite.ops.backup.programs import Database

SECONDS_TO_CHECK = 6 * 3600
_OTHER_CONNECTIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
"""
_REMOVE_TABLES = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"


@dataclass(frozen=True)
class BackupReport:
    """What was backed up, and whether a trial restore has verified it."""

    directory: str
    bytes: int
    holdings: Holdings
    is_verified: bool
    damaged_files: tuple[str, ...]

    @classmethod
    def of(cls, directory: Path, manifest: Manifest, *, is_verified: bool) -> Self:
        size = sum(piece.bytes for piece in manifest.pieces)
        return cls(str(directory), size, manifest.holdings, is_verified, manifest.damaged_files)


def back_up(directory: Path, *, verify: bool = True, scope: Scope) -> BackupReport:
    """Back up into a new or empty directory, completely or not at all.

    LCM can be used meanwhile. Raises Conflict if the directory is not empty, Conflict `damaged` if a check of the
    trial restore has findings, Unavailable if the dump or its trial restore fails, and Invalid if pg_dump and
    pg_restore of a suitable version are missing.
    """
    directory = directory.absolute()
    _require_empty(directory)
    try:
        sweep_directories(directory.parent)
        sweep_databases(_database())
        with unfinished(directory) as working:
            manifest = _write(working)
            if verify:
                _verify(working, manifest)
            with transaction.atomic():
                AuditLog(scope).record(Act.BACKUP, target=str(directory), detail={"digest": manifest.holdings.digest})
            if directory.exists():
                directory.rmdir()
            for path in (working, *working.rglob("*")):
                sync(path)
            working.rename(directory)
            sync(directory.parent)
    except OSError as refusal:
        raise Unavailable(f"The backup cannot be written to {directory}: {refusal.strerror or refusal}.") from refusal
    return BackupReport.of(directory, manifest, is_verified=verify)


def _require_empty(directory: Path) -> None:
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise Conflict(f"{directory} is not empty: a backup needs a directory of its own.")
    except OSError as refusal:
        raise Invalid(f"{directory} cannot be used: {refusal.strerror}.") from refusal


def _database() -> Database:
    connection.ensure_connection()
    return Database.of(cast("psycopg.Connection[Any]", connection.connection))


def _write(directory: Path) -> Manifest:
    with snapshot():
        connection.ensure_connection()
        seen = cast("psycopg.Connection[Any]", connection.connection)
        database = Database.of(seen)
        (name,) = cast("tuple[str]", seen.execute("SELECT pg_export_snapshot()").fetchone())
        held, files = count_holdings(seen), stored_files(seen)
        migrations = tuple(sorted(MigrationRecorder(connection).applied_migrations()))
        create_private(directory / DUMP)
        database.dump(directory / DUMP, snapshot=name)
    pieces, damaged = [piece_of(directory / DUMP, name=DUMP)], []
    for uri, sha256 in files:
        piece = _copy(uri, directory)
        if piece is None and not LargeFile.objects.filter(storage_uri=uri, erased_by=None).exists():
            raise Unavailable("A file was erased while the backup was made, so it was not kept. Back up again.")
        if piece is None or piece.sha256 != sha256:
            damaged.append(uri)
        if piece is not None:
            pieces.append(piece)
    manifest = Manifest(
        created_at=timezone.now(),
        postgresql=seen.info.server_version // 10_000,
        holdings=held,
        pieces=tuple(pieces),
        damaged_files=tuple(damaged),
        migrations=migrations,
    )
    manifest.write(directory)
    return manifest


def _copy(uri: str, directory: Path) -> Piece | None:
    """Copy a stored file into the backup; None if the storage does not have it."""
    target = directory / FILES / uri
    create_private(target)
    try:
        with default_storage.open(uri) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    except FileNotFoundError:
        return None
    return piece_of(target, name=f"{FILES}/{uri}")


def _verify(directory: Path, manifest: Manifest) -> None:
    """Restore the backup into a trial database, and check that database."""
    manifest.require_whole(directory)
    with trial_database(_database()) as scratch:
        scratch.load(directory / DUMP)
        with scratch.connect() as restored:
            if count_holdings(restored) != manifest.holdings:
                raise Unavailable("The backup does not restore to what was dumped; it was not kept.")
        _check(scratch, directory)


def _check(scratch: Database, directory: Path) -> None:
    """Run the checker on the restored database and the backup's files."""
    # Inside the backup's directory, so that both are removed if this process is killed.
    with tempfile.TemporaryDirectory(prefix="trial-", dir=directory) as data_dir:
        (Path(data_dir) / FILES).symlink_to(directory / FILES)
        own = {
            "LCM_DATABASE_URL": scratch.url,
            "LCM_DATA_DIR": data_dir,
            "LCM_SECRET_KEY": settings.SECRET_KEY,
            "LCM_LOG_LEVEL": "ERROR",
        }
        # A secret is set either directly or by a file, never by both.
        left_out = {"LCM_API_KEY", "LCM_API_KEY_FILE", *(f"{name}_FILE" for name in own)}
        environment = {name: value for name, value in os.environ.items() if name not in left_out} | own
        program = [sys.executable, str(settings.BASE_DIR / "manage.py"), "lcm"]
        with scratch.connect() as restored:
            workspaces = [name for (name,) in restored.execute("SELECT name FROM workspaces ORDER BY 1").fetchall()]
        for workspace in workspaces:
            done = subprocess.run(
                [*program, f"--workspace={workspace}", "check"],
                env=environment,
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS_TO_CHECK,
                check=False,
            )
            if done.returncode == FINDINGS_EXIT_CODE:
                raise Conflict(
                    f"Restored on trial, workspace {workspace!r} is not clean: repair what `lcm check` finds there, or"
                    " keep the backup all the same with --unverified.",
                    code="damaged",
                )
            if done.returncode != 0:
                reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                raise Unavailable(f"Restored on trial, workspace {workspace!r} could not be checked: {reason}")


def restore(directory: Path, *, scope: Scope) -> BackupReport:
    """Fill LCM's database and storage from a backup, and migrate its tables.

    Nothing is changed before every file of the backup is verified. Raises Invalid if the backup is incomplete or
    damaged; Conflict if the database holds conversations or has other connections; Unavailable if PostgreSQL refuses,
    or if the restored contents differ from those backed up.
    """
    directory = directory.absolute()
    manifest = Manifest.read(directory)
    manifest.require_whole(directory)
    database = _database()
    _empty_database(database)
    # The files first: if this process is killed, the database is still empty, and the restore can be repeated.
    _restore_files(directory, manifest)
    database.load(directory / DUMP)
    with database.connect() as restored:
        found = count_holdings(restored)
    if found != manifest.holdings:
        raise Unavailable("What was restored is not what was backed up.")
    try:
        call_command("migrate", verbosity=0)
    except CommandError as refusal:
        raise Conflict(str(refusal)) from refusal
    with transaction.atomic():
        AuditLog(scope).record(Act.RESTORE_BACKUP, target=str(directory), detail={"digest": found.digest})
    return BackupReport.of(directory, manifest, is_verified=True)


def _empty_database(database: Database) -> None:
    """Empty the database; raises Conflict if it has conversations or is in use."""
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    with database.connect() as target:
        has_tables = target.execute("SELECT to_regclass('conversations') IS NOT NULL").fetchone() == (True,)
        if has_tables and target.execute("SELECT EXISTS (SELECT FROM conversations)").fetchone() == (True,):
            raise Conflict("This database holds conversations: a backup can only be restored into an empty one.")
        if target.execute(_OTHER_CONNECTIONS).fetchone() != (0,):
            raise Conflict("Somebody else uses this database: stop LCM (`lcm up`) first, then restore.")
        target.execute(_REMOVE_TABLES)


def _restore_files(directory: Path, manifest: Manifest) -> None:
    for piece in manifest.pieces:
        if not piece.path.startswith(f"{FILES}/"):
            continue
        uri = piece.path.removeprefix(f"{FILES}/")
        # Whole bytes replace a file that may be damaged; damaged ones replace nothing.
        if uri in manifest.damaged_files and default_storage.exists(uri):
            continue
        with storing(f"The file {uri} cannot be stored"), (directory / piece.path).open("rb") as source:
            default_storage.save(uri, File(source))
