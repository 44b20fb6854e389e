"""Tests run against a PostgreSQL of their own, started once for all workers and gone with them, however they end.

`LCM_DATABASE_URL` names another server, on which databases for the tests are made and removed. No other `LCM_*` of
whoever runs them is read: what a test is told, it is told by itself.
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

from lcmsite.embedded_postgres.lease import EmbeddedPostgres
from lcmsite.embedded_postgres.location import Location
from tests.committed import committed_db  # noqa: F401
from tests.guardian import a_directory, have_it_guarded
from tests.surroundings import leave_the_callers_settings

# pytest-django would read the settings before any file of ours, so it is not told of them in pyproject.toml.
leave_the_callers_settings()
django.setup()

SECONDS_TO_STOP = 30

# They wait for processes of their own. After them come short ones, which keep all workers busy to the end.
LONG = (
    "tests/browser/",
    "tests/flows/",
    *(
        f"tests/lcmsite/test_{what}"
        for what in ("up", "mcp", "embedded", "backup", "outages", "schemathesis", "checks")
    ),
)

# What is made once for several files: a site to open in a browser, a gateway, the parsed source of the product.
TOGETHER = (
    "tests/browser/",
    "tests/retrieval/test_formats",
    ("tests/lcmsite/gateway/test_", "tests/lcmsite/gateway/window/"),
    "tests/architecture/",
    "tests/frozen/",
)

# The default run tries the same examples each time, so that it fails for whoever broke something; other ones each time
# are tried with ARGS="--hypothesis-profile=thorough". No time is asserted, that of an example neither.
hypothesis.settings.register_profile("quick", max_examples=15, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=200, deadline=None)
hypothesis.settings.load_profile("quick")

# What is loaded to find the tests is there to stay: looking for garbage in it again and again would only take time.
gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    # The site's own algorithm: what a test stores as a password, any process of a site can read.
    settings.PASSWORD_HASHERS = ["tests.passwords.QuickHasher"]
    # Looked for when asked for. A site lists its static files as it starts, and so would every client of a test.
    settings.WHITENOISE_AUTOREFRESH = True
    if "PYTEST_XDIST_WORKER" not in os.environ:
        have_it_guarded()
    # A worker finds the directory in the environment, where the process that started it has put it.
    if settings.EMBEDDED_DATABASE and "PYTEST_XDIST_WORKER" not in os.environ:
        data_dir = a_directory()
        os.environ["LCM_DATA_DIR"] = str(data_dir)
        settings.DATA_DIR = data_dir
        connections["default"].settings_dict["HOST"] = str(Location(data_dir).socket_dir)
        EmbeddedPostgres(data_dir, durable=False).hold()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _leave_most_cases(items)
    # First, as pytest-django has it, what leaves the database as it was.
    items.sort(key=lambda item: 0 if _is_undone(item) else 1 if item.nodeid.startswith(LONG) else 2)


def _leave_most_cases(items: list[pytest.Item]) -> None:
    """Leave to `make thorough` most cases of a test that is marked `sampled`."""
    cases_of: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not any(map(item.get_closest_marker, ("thorough", "slow"))):
            cases_of.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in cases_of.items():
        [count] = cases[0].get_closest_marker("sampled").args
        # By chance, as even steps would keep meeting the same values of a grid; the same ones in each worker and run.
        kept = random.Random(name).sample(range(len(cases)), min(count, len(cases)))
        for number, item in enumerate(cases):
            if number not in kept:
                item.add_marker(pytest.mark.thorough)


def _is_undone(item: pytest.Item) -> bool:
    return item.get_closest_marker("django_db") is not None or "db" in getattr(item, "fixturenames", ())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return _ByWhatIsShared(config, log) if config.getoption("dist") == "loadscope" else None


class _ByWhatIsShared(LoadScopeScheduling):
    """Gives a worker whole files, whose tests share what is made once, or several that share it."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((str(paths) for paths in TOGETHER if path.startswith(paths)), path)


def pytest_unconfigure(config: pytest.Config) -> None:
    if settings.EMBEDDED_DATABASE and "PYTEST_XDIST_WORKER" not in os.environ:
        server = EmbeddedPostgres(settings.DATA_DIR)
        server.let_go()
        deadline = time.monotonic() + SECONDS_TO_STOP
        # The workers have leases too, and may still be ending.
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
    """The database for the tests, whoever asks for it.

    pytest-django's own makes none for a test that reaches it by way of other fixtures: what such a test writes, and
    what it removes, would be in the developer's database.
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
            # Queues and threads have connections of their own, and a database in use cannot be removed.
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        if not django_db_keepdb:
            teardown_databases(made, verbosity=verbosity)


@pytest.fixture(autouse=True)
def files_of_its_own(settings: Any, tmp_path: Path) -> None:
    """No test stores a file, an anchor or a key among those of whoever runs it."""
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.ANCHOR_DIR = tmp_path / "anchors"
    settings.ANCHOR_KEY_FILE = tmp_path / "anchor_key.pem"
