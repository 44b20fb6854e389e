"""A database for one run of a measurement: made before Django is set up, migrated, and gone when it is over.

Durable, unlike that of the tests: what a commit costs is part of what is measured.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from lcmsite.embedded_postgres.lease import EmbeddedPostgres
from tests.guardian import a_directory, have_it_guarded


@contextmanager
def scratch_database() -> Iterator[None]:
    """Within, Django is set up on an empty LCM database: on the server of LCM_DATABASE_URL, or on one of its own."""
    # Whoever stops the measurement, by either signal, stops its server, too; and so does a kill, in disorder.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    have_it_guarded()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
    # A measurement prints a table; what the site would log of it says nothing more.
    os.environ.setdefault("LCM_LOG_LEVEL", "ERROR")
    url = os.environ.get("LCM_DATABASE_URL", "")
    with _database_on(url) if url else _own_server():
        import django
        from django.core.management import call_command
        from django.db import connection

        django.setup()
        call_command("migrate", verbosity=0)
        try:
            yield
        finally:
            connection.close()
            connection.close_pool()


@contextmanager
def _database_on(url: str) -> Iterator[None]:
    name = f"lcm_scratch_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        os.environ["LCM_DATABASE_URL"] = urlsplit(url)._replace(path=f"/{name}").geturl()
        try:
            yield
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _own_server() -> Iterator[None]:
    data_dir = a_directory()
    os.environ["LCM_DATA_DIR"] = str(data_dir)
    server = EmbeddedPostgres(data_dir)
    try:
        with server.lease():
            yield
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)
