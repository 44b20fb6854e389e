"""What tests of the site share."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from cachetools import TTLCache
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from conversations.files.large_files import LargeFileService
from conversations.models import Workspace
from conversations.types import NewMessage, Role
from lcmsite.access import keys
from tests.committed import committed
from tests.factories import a_workspace, say
from tests.guardian import a_directory
from tests.lcmsite.operating import PROJECT, free_port, own_environment, processes_of


@pytest.fixture
def redis_url(redis: tuple[str, psutil.Popen]) -> str:
    return redis[0]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[tuple[str, psutil.Popen]]:
    """A server, and its address."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    socket = tmp_path / "redis.sock"
    server = psutil.Popen(
        [program, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", tmp_path],
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not socket.exists():
        assert time.monotonic() < deadline and server.poll() is None, "redis-server did not start"
        time.sleep(0.02)
    yield f"unix://{socket}", server
    server.kill()
    server.wait()


@pytest.fixture(scope="session")
def data_dir() -> Iterator[Path]:
    """A data directory in which LCM has mostly been started before: to make a database takes longer than most tests."""
    with _directory() as directory:
        yield directory


@pytest.fixture
def fresh_dir() -> Iterator[Path]:
    """A data directory in which no LCM has been started yet."""
    with _directory() as directory:
        yield directory
        for process in processes_of(directory):
            with suppress(psutil.NoSuchProcess):
                process.kill()


@contextmanager
def _directory() -> Iterator[Path]:
    directory = a_directory()
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def mcp_port() -> int:
    return free_port()


@pytest.fixture
def up(data_dir: Path, port: int) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts `up` with a database of its own, and ends whatever a failed test leaves of it."""

    def start(*arguments: str, **settings: str) -> "subprocess.Popen[str]":
        names = {"LCM_DATA_DIR": str(data_dir), "LCM_PORT": str(port), "LCM_WEB_WORKERS": "1"}
        # Not at a port that another test may be using.
        names |= {"LCM_MCP_PORT": "0", "LCM_GATEWAY_PORT": "0"}
        return subprocess.Popen(
            [sys.executable, "manage.py", "up", *arguments],
            cwd=PROJECT,
            env=own_environment(**names | settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # As a shell does that starts it in the background.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )

    yield start
    for process in processes_of(data_dir):
        process.kill()


@pytest.fixture(scope="module")
def url(django_db_setup: None, data_dir: Path) -> Iterator[str]:
    """Where agents are served, over HTTP, on the test database."""
    # Not imported above: the client takes longer to load than most of these tests to run.
    from tests.lcmsite.agents import serving

    with serving(data_dir) as url:
        yield url


@pytest.fixture(scope="module")
def stdio(data_dir: Path, harbour_of_all: dict[str, Any]) -> Iterator[Any]:
    from tests.lcmsite.agents import hired, over_stdio

    with hired(over_stdio(data_dir)) as agents:
        yield agents


@pytest.fixture(scope="module")
def http(url: str) -> Iterator[Any]:
    from tests.lcmsite.agents import hired, over_http

    with hired(over_http(url)) as agents:
        yield agents


@pytest.fixture(params=["http", pytest.param("stdio", marks=pytest.mark.thorough)])
def agents(request: pytest.FixtureRequest) -> Any:
    """Agents, over either transport; who is asked with the same key is the same agent."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def harbour_of_all(django_db_setup: None, django_db_blocker: DjangoDbBlocker, data_dir: Path) -> Iterator[Any]:
    from tests.lcmsite.harbour import a_harbour

    with committed(django_db_blocker):
        with override_settings(MEDIA_ROOT=data_dir / "files"):
            made = a_harbour()
            picture = LargeFileService.from_settings().store(
                conversation_id=made["conversation_id"], content=b"\x89PNG\xff"
            )
        # From now on to say it again changes nothing, whoever says it.
        once = NewMessage(Role.USER, "again", idempotency_key="once")
        say(made["conversation_id"], once)
        yield made | {"picture_id": picture.file_id}


@pytest.fixture
def harbour(harbour_of_all: dict[str, Any], settings: Any, data_dir: Path) -> dict[str, Any]:
    """A compacted conversation with a tool call and two files, which other processes see; and what to ask about it.

    It is the same for all tests of a module: they look at it, and write elsewhere.
    """
    # Where the servers of agents look for them.
    settings.MEDIA_ROOT = data_dir / "files"
    return dict(harbour_of_all)


@pytest.fixture(scope="module")
def key(harbour_of_all: dict[str, Any]) -> str:
    """Opens the workspace of the harbour, for reading and writing."""
    from tests.lcmsite.callers import an_api_key

    return an_api_key()


@pytest.fixture(scope="module")
def pier(harbour_of_all: dict[str, Any]) -> Workspace:
    """Another workspace, to write in."""
    return a_workspace("pier")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock by which callers are cached; it stands still until a test moves it."""
    now = SimpleNamespace(moment=1000.0)
    cached = TTLCache(maxsize=10, ttl=keys.SECONDS_CACHED, timer=lambda: now.moment)
    monkeypatch.setattr(keys, "_callers", cached)
    return now
