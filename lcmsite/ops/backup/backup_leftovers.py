"""Working directories and trial databases of backups, and removing leftover ones.

A directory `.NAME.XXXXXXXX.unfinished` is in use while its lock is held, a database `lcm_verify_OID_XXXXXXXX` while the
advisory lock of its name is held in the database that is backed up, whose OID is in the name. The kernel and the
server release the locks when their holder ends, even if it is killed.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import structlog
from psycopg import sql

from conversations.errors import Forbidden, Unavailable
from lcmsite.embedded_postgres.location import try_lock
from lcmsite.ops.backup.programs import Database

logger = structlog.get_logger(__name__)

_DIRECTORY = re.compile(r"\..+\.[0-9a-f]{8}\.unfinished")

# The first half of the advisory lock's key, used for nothing else in LCM.
_LOCKS = 0x1C4B
_LOCK = "SELECT pg_try_advisory_lock(%s, hashtext(%s))"
_UNLOCK = "SELECT pg_advisory_unlock(%s, hashtext(%s))"
_PREFIX = "SELECT 'lcm_verify_' || oid || '_' FROM pg_database WHERE datname = current_database()"
_TRIALS = "SELECT datname FROM pg_database WHERE starts_with(datname, %s) ORDER BY datname"


@contextmanager
def unfinished(directory: Path) -> Iterator[Path]:
    """A private directory beside the target; removed at the end unless renamed."""
    working = directory.with_name(f".{directory.name}.{secrets.token_hex(4)}.unfinished")
    directory.parent.mkdir(parents=True, exist_ok=True)
    # It will hold the text of every conversation.
    working.mkdir(mode=0o700)
    lock = os.open(working, os.O_RDONLY)
    try:
        # A failure does no harm: on a file system without directory locks, the sweep cannot lock it, either.
        with suppress(OSError):
            try_lock(lock, fcntl.LOCK_EX)
        yield working
    finally:
        os.close(lock)
        shutil.rmtree(working, ignore_errors=True)


def sweep_directories(parent: Path) -> None:
    """Remove the working directories of backups that are no longer running."""
    if not parent.is_dir():
        return
    for directory in parent.iterdir():
        if not _DIRECTORY.fullmatch(directory.name) or directory.is_symlink() or not directory.is_dir():
            continue
        try:
            lock = os.open(directory, os.O_RDONLY)
        except OSError:
            # It was renamed or removed meanwhile, or belongs to another user.
            continue
        try:
            with suppress(OSError):
                if try_lock(lock, fcntl.LOCK_EX):
                    shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(lock)


@contextmanager
def trial_database(database: Database) -> Iterator[Database]:
    """Create an empty database on the same server, and drop it at the end."""
    with database.connect(autocommit=True) as server:
        name = _one(server, _PREFIX) + secrets.token_hex(4)
        server.execute(_LOCK, (_LOCKS, name))
        try:
            server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        except psycopg.errors.InsufficientPrivilege as refusal:
            raise Forbidden(
                "The database user may not create the database in which a backup is restored on trial: grant CREATEDB,"
                " or leave the trial out with --unverified."
            ) from refusal
        trial = database.named(name)
        try:
            try:
                trial.connect().close()
            except psycopg.OperationalError as refusal:
                raise Unavailable(
                    "The database in which a backup is restored on trial was created, but a connection to it fails."
                    " With PgBouncer, use the server's own port, or add an entry `*` to [databases]; or leave the trial"
                    " out with --unverified."
                ) from refusal
            yield trial
        finally:
            _drop(server, name)


def sweep_databases(database: Database) -> None:
    """Drop the trial databases of backups that are no longer running, if possible."""
    with database.connect(autocommit=True) as server:
        for (name,) in server.execute(_TRIALS, (_one(server, _PREFIX),)).fetchall():
            if _one(server, _LOCK, _LOCKS, name):
                try:
                    _drop(server, name)
                except psycopg.Error as refusal:
                    # It may belong to another role, or be in use by one.
                    logger.warning("trial_database_not_dropped", database=name, error=type(refusal).__name__)
                server.execute(_UNLOCK, (_LOCKS, name))


def _drop(server: psycopg.Connection[Any], name: str) -> None:
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _one(server: psycopg.Connection[Any], statement: str, *parameters: object) -> Any:
    row = server.execute(statement, parameters).fetchone()
    return row[0] if row else None
