"""`lcm migrate`: Django's, for one process at a time and no newer database."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pglock
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from lcmsite.ops.health import newer_migrations


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with migrating():
            super().handle(*args, **options)


@contextmanager
def migrating() -> Iterator[None]:
    """Let one process migrate; raises CommandError if other code made the tables.

    This is a newer version, or a version of before 2026-11-22, whose migrations were replaced.
    """
    with exclusive("lcm.migrations"):
        applied = MigrationRecorder(connection).applied_migrations()
        if ("conversations", "0001_store") in applied:
            raise CommandError(
                "This database was made by an earlier version of LCM, and was not changed: export its conversations"
                " with that version (`lcm ledger export --all -o FILE`), and import them into an empty database with"
                " this one (`lcm ledger import FILE`). See docs/upgrade.md."
            )
        if newer := newer_migrations(applied):
            raise CommandError(f"The database is newer than this code: upgrade the code. It lacks {', '.join(newer)}.")
        yield


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Hold an advisory lock during the block; other processes of LCM wait for it."""
    # Poll for the lock: a session that waits inside PostgreSQL would block CREATE INDEX CONCURRENTLY.
    while True:
        with pglock.advisory(name, timeout=0) as mine:
            if mine:
                yield
                return
        time.sleep(0.1)
