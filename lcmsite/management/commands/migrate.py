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
    """Let only this process migrate; raises CommandError if the database is newer."""
    with exclusive("lcm.migrations"):
        if newer := newer_migrations(MigrationRecorder(connection).applied_migrations()):
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
