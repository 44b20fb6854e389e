"""A backup: one moment of the database, the files it knows, a manifest, and the proof that it can be restored."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psycopg
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid, Unavailable
from conversations.scope import Scope
from conversations.sql import snapshot
from lcmsite.embedded_postgres.lease import PROJECT
from lcmsite.ops.backup.backup_leftovers import sweep_databases, sweep_directories, trial_database, unfinished
from lcmsite.ops.backup.digest import Holdings, holdings, stored_files
from lcmsite.ops.backup.manifest import DUMP, FILES, Manifest, Piece, chunks, make_private, piece_of
from lcmsite.ops.backup.programs import Database

SECONDS_TO_CHECK = 6 * 3600


@dataclass(frozen=True)
class BackupReport:
    """What was backed up, and whether it was restored on trial, with nothing found by the checker."""

    directory: str
    bytes: int
    holdings: Holdings
    is_verified: bool
    damaged_files: tuple[str, ...] = ()


def back_up(directory: Path, *, verify: bool = True, scope: Scope) -> BackupReport:
    """Write a backup into a directory that is not there yet, or empty; it appears there whole or not at all.

    Others go on working meanwhile. Raises Conflict if something is there, Unavailable if the dump fails or, on trial,
    does not restore to what was dumped, and Invalid if there are no tools for it.
    """
    directory = directory.absolute()
    _require_free(directory)
    try:
        sweep_directories(directory.parent)
        with unfinished(directory) as working:
            manifest = _write(working)
            if verify:
                _prove(working, manifest)
            with transaction.atomic():
                AuditLog(scope).record(Act.BACKUP, target=str(directory), detail={"digest": manifest.holdings.digest})
            if directory.exists():
                directory.rmdir()
            working.rename(directory)
    except OSError as refusal:
        raise Unavailable(f"The backup cannot be written to {directory}: {refusal.strerror or refusal}.") from refusal
    return BackupReport(
        directory=str(directory),
        bytes=sum(piece.bytes for piece in manifest.pieces),
        holdings=manifest.holdings,
        is_verified=verify,
        damaged_files=manifest.damaged_files,
    )


def _require_free(directory: Path) -> None:
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise Conflict(f"{directory} is not empty: a backup needs a directory of its own.")
    except OSError as refusal:
        raise Invalid(f"{directory} cannot be used: {refusal.strerror}.") from refusal


def _write(directory: Path) -> Manifest:
    with snapshot():
        connection.ensure_connection()
        seen = cast("psycopg.Connection[Any]", connection.connection)
        database = Database.of(seen)
        (name,) = cast("tuple[str]", seen.execute("SELECT pg_export_snapshot()").fetchone())
        held, files = holdings(seen), stored_files(seen)
        make_private(directory / DUMP)
        database.dump(directory / DUMP, snapshot=name)
    pieces, damaged = [piece_of(directory / DUMP, name=DUMP)], []
    for uri, sha256 in files:
        piece = _copied(uri, directory)
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
    )
    manifest.write(directory)
    return manifest


def _copied(uri: str, directory: Path) -> Piece | None:
    """A file of the storage in the backup; None if the storage does not have it."""
    target = directory / FILES / uri
    make_private(target)
    digest, size = hashlib.sha256(), 0
    try:
        with default_storage.open(uri) as source, target.open("wb") as copy:
            for chunk in chunks(source):
                digest.update(chunk)
                size += copy.write(chunk)
    except FileNotFoundError:
        return None
    return Piece(path=f"{FILES}/{uri}", bytes=size, sha256=digest.hexdigest())


def _prove(directory: Path, manifest: Manifest) -> None:
    """Restore into a database of its own on the same server, and look at it as at any other."""
    manifest.require_whole(directory)
    database = Database.of(cast("psycopg.Connection[Any]", connection.connection))
    sweep_databases(database)
    with trial_database(database) as scratch:
        scratch.load(directory / DUMP)
        with scratch.connect() as restored:
            if holdings(restored) != manifest.holdings:
                raise Unavailable("The backup does not restore to what was dumped; it was not kept.")
        _check(scratch, directory)


def _check(scratch: Database, directory: Path) -> None:
    """Run the checker on the restored database, with the files of the backup beside it."""
    # Beside what it is about, so that both are swept together if this process is killed.
    with tempfile.TemporaryDirectory(prefix="trial-", dir=directory) as data_dir:
        (Path(data_dir) / FILES).symlink_to(directory / FILES)
        environment = {
            **os.environ,
            "LCM_DATABASE_URL": scratch.url,
            "LCM_DATA_DIR": data_dir,
            "LCM_SECRET_KEY": settings.SECRET_KEY,
            "LCM_LOG_LEVEL": "ERROR",
        }
        program = [sys.executable, str(PROJECT / "manage.py"), "lcm"]
        with scratch.connect() as restored:
            workspaces = [name for (name,) in restored.execute("SELECT name FROM workspaces ORDER BY 1").fetchall()]
        for workspace in workspaces:
            done = subprocess.run(
                [*program, "--workspace", workspace, "check"],
                env={name: value for name, value in environment.items() if name != "LCM_API_KEY"},
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS_TO_CHECK,
                check=False,
            )
            if done.returncode != 0:
                raise Unavailable(
                    f"Restored on trial, workspace {workspace!r} is not clean: repair what `lcm check` finds, or keep"
                    " the backup all the same with --unverified."
                )
