"""A database for one measurement, which is removed at the end.

Unlike the database of the tests it is durable: the cost of a commit is part of the measurement.
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
    """Set up Django on an empty LCM database during the block.

    The database is on the server of LCM_DATABASE_URL, or on a server of its own.
    """
    # SIGTERM and SIGINT stop the measurement and then its server; after SIGKILL, the guardian stops the server.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    have_it_guarded()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
    # A measurement prints a table, and the site's log would add nothing to it.
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
