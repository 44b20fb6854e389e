"""Start one PostgreSQL server for all test workers, and stop it when they end.

If `LCM_DATABASE_URL` names a server, the test databases are created there instead, and removed at the end. The tests
read no other `LCM_*` variable of the environment: each test sets what it needs.
"""

import gc
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import hypothesis
import pytest
from django.conf import settings
from django.db import connection, connections
from django.test.utils import setup_databases, teardown_databases
from pytest_django import DjangoDbBlocker
from xdist.scheduler import LoadScopeScheduling

from conversations.files.exploration import subprocess_parsers
from lcmsite.embedded_postgres.lease import EmbeddedPostgres
from lcmsite.embedded_postgres.location import Location
from tests.committed import committed_db  # noqa: F401
from tests.guardian import a_directory, have_it_guarded
from tests.module_rows import changes_of_its_own, module_files, module_rows  # noqa: F401
from tests.surroundings import leave_the_callers_settings

# pyproject.toml does not name the settings: pytest-django would read them before this file clears the environment.
leave_the_callers_settings()
django.setup()

SECONDS_TO_STOP = 30

# Long tests, which wait for processes. They run before the short ones, which keep all workers busy to the end.
LONG = (
    "tests/browser/",
    "tests/flows/",
    *(
        f"tests/lcmsite/test_{what}"
        for what in ("up", "mcp", "embedded", "backup", "outages", "schemathesis", "checks")
    ),
)

# Files that run in one worker, because they share an expensive fixture: a site, a gateway, the parsed source.
TOGETHER = (
    "tests/browser/",
    "tests/retrieval/test_formats",
    ("tests/lcmsite/gateway/test_", "tests/lcmsite/gateway/window/"),
    "tests/architecture/",
    "tests/frozen/",
)

# The default run uses the same examples each time, so that it fails only for a change in the code. With
# ARGS="--hypothesis-profile=thorough", the examples differ in each run. Neither has a deadline.
hypothesis.settings.register_profile("quick", max_examples=15, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=200, deadline=None)
hypothesis.settings.load_profile("quick")

# Objects that are created while tests are collected stay until the end: exclude them from garbage collection.
gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    # It hashes with the site's own algorithm, so that any process of a site can check a password that a test stores.
    settings.PASSWORD_HASHERS = ["tests.passwords.QuickHasher"]
    # Find static files on request: otherwise every test client would list all of them when it starts.
    settings.WHITENOISE_AUTOREFRESH = True
    # As in tests/flows/own_settings.py, for other processes.
    subprocess_parsers.SECONDS = 60
    if "PYTEST_XDIST_WORKER" not in os.environ:
        have_it_guarded()
    # A worker inherits the directory in its environment.
    if settings.EMBEDDED_DATABASE and "PYTEST_XDIST_WORKER" not in os.environ:
        data_dir = a_directory()
        os.environ["LCM_DATA_DIR"] = str(data_dir)
        settings.DATA_DIR = data_dir
        connections["default"].settings_dict["HOST"] = str(Location(data_dir).socket_dir)
        EmbeddedPostgres(data_dir, durable=False).hold()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _leave_most_cases(items)
    # Tests that are rolled back run first, as in pytest-django.
    items.sort(key=lambda item: 0 if _is_undone(item) else 1 if item.nodeid.startswith(LONG) else 2)


def _leave_most_cases(items: list[pytest.Item]) -> None:
    """Keep only some cases of a test marked `sampled`; `make thorough` runs all."""
    cases_of: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not any(map(item.get_closest_marker, ("thorough", "slow"))):
            cases_of.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in cases_of.items():
        [count] = cases[0].get_closest_marker("sampled").args
        # A random sample, because even steps would repeat the same values of a grid; equal in each worker and run.
        kept = random.Random(name).sample(range(len(cases)), min(count, len(cases)))
        for number, item in enumerate(cases):
            if number not in kept:
                item.add_marker(pytest.mark.thorough)


def _is_undone(item: pytest.Item) -> bool:
    return item.get_closest_marker("django_db") is not None or not {"db", "module_rows"}.isdisjoint(
        getattr(item, "fixturenames", ())
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return _ByWhatIsShared(config, log) if config.getoption("dist") == "loadscope" else None


class _ByWhatIsShared(LoadScopeScheduling):
    """Gives each worker whole files, or groups of files that share fixtures."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((str(paths) for paths in TOGETHER if path.startswith(paths)), path)


def pytest_unconfigure(config: pytest.Config) -> None:
    if settings.EMBEDDED_DATABASE and "PYTEST_XDIST_WORKER" not in os.environ:
        server = EmbeddedPostgres(settings.DATA_DIR)
        server.let_go()
        deadline = time.monotonic() + SECONDS_TO_STOP
        # The workers hold leases, too, and may not have ended yet.
        while server.has_keeper() and time.monotonic() < deadline:
            time.sleep(0.05)
        shutil.rmtree(settings.DATA_DIR, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest,
    django_test_environment: None,
    django_db_blocker: DjangoDbBlocker,
    django_db_modify_db_settings: None,
    django_db_keepdb: bool,
    django_db_createdb: bool,
) -> Iterator[None]:
    """Create the test database for every test that uses one, even indirectly.

    pytest-django's own fixture creates none for a test that uses the database only through other fixtures. Such a test
    would write to the developer's database.
    """
    verbosity = request.config.option.verbose
    with django_db_blocker.unblock():
        made = setup_databases(
            verbosity=verbosity,
            interactive=False,
            aliases={"default"},
            keepdb=django_db_keepdb and not django_db_createdb,
        )
    yield
    with django_db_blocker.unblock():
        with connection.cursor() as cursor:
            # Close the connections of queues and threads: a database in use cannot be removed.
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        if not django_db_keepdb:
            teardown_databases(made, verbosity=verbosity)


@pytest.fixture(autouse=True)
def files_of_its_own(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> None:
    """Give each test its own directories for files, anchors and keys; rows of a module keep their files."""
    of_module = "module_files" in request.fixturenames
    settings.MEDIA_ROOT = request.getfixturevalue("module_files") if of_module else tmp_path / "files"
    settings.ANCHOR_DIR = tmp_path / "anchors"
    settings.ANCHOR_KEY_FILE = tmp_path / "anchor_key.pem"
