"""The embedded PostgreSQL: its life, and what may happen to it."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from lcmsite.embedded_postgres import binaries as binaries_module
from lcmsite.embedded_postgres.account import Account
from lcmsite.embedded_postgres.binaries import Binaries, choose, make_reachable
from lcmsite.embedded_postgres.cluster import shared_buffers, usable_memory
from lcmsite.embedded_postgres.lease import EmbeddedPostgres
from lcmsite.embedded_postgres.location import DATABASE, PORT, ROLE, EmbeddedPostgresError, could_lock
from tests.guardian import a_directory
from tests.lcmsite.operating import PROJECT, EmbeddedDatabase, eventually

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """Of its own, for one test."""
    directory = a_directory()
    yield directory
    server = EmbeddedPostgres(directory)
    server.let_go()
    if server.location.home.exists():
        eventually(lambda: not server.has_keeper() and is_gone(server))
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def used_before() -> Iterator[EmbeddedPostgres]:
    """A server that was started and stopped."""
    directory = a_directory()
    server = EmbeddedPostgres(directory, durable=False)
    with server.lease():
        pass
    yield server
    shutil.rmtree(directory)


@pytest.fixture
def server(data_dir: Path, used_before: EmbeddedPostgres) -> EmbeddedPostgres:
    """A server that was used before: its first start, which takes a second, is behind it."""
    subprocess.run(["cp", "-a", used_before.location.home, data_dir], check=True)
    return EmbeddedPostgres(data_dir, durable=False)


def connect(server: EmbeddedPostgres) -> "psycopg.Connection[tuple]":
    return EmbeddedDatabase(server.data_dir).connect(autocommit=True)


def ask(server: EmbeddedPostgres, question: str) -> object:
    with connect(server) as connection:
        return connection.execute(question).fetchone()[0]


def postmaster(server: EmbeddedPostgres) -> int:
    return int((server.location.cluster / "postmaster.pid").read_text().split()[0])


def is_gone(server: EmbeddedPostgres) -> bool:
    """Whether not one process of the server is left."""
    return could_lock(server.location.server_lock, fcntl.LOCK_EX)


def another_user(data_dir: Path, *, python: str = sys.executable, **process: object) -> "subprocess.Popen[str]":
    """A process with a lease of its own: it says when it has it, and gives it back when it is sent a line."""
    script = (
        "import sys; from pathlib import Path\n"
        "from lcmsite.embedded_postgres.lease import EmbeddedPostgres\n"
        "server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)\n"
        "with server.lease():\n    print('in', flush=True)\n    input()\n"
    )
    return subprocess.Popen(
        [python, "-c", script, str(data_dir)],
        cwd="/",
        env={**os.environ, "PYTHONPATH": f"{PROJECT}:{Path(psycopg.__file__).parent.parent}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **process,
    )


def python_of(account: Account) -> str:
    """An interpreter that the account may run: ours, and its packages, may lie in root's own directory."""
    if not account.can_enter(Path(psycopg.__file__).parent):
        pytest.skip(f"the packages lie in a directory that {account.name} may not enter")
    for python in (sys.executable, "/usr/bin/python3"):
        if account.can_enter(Path(python)):
            test = [python, "-c", "import sys; sys.exit(sys.version_info[:2] != tuple(map(int, sys.argv[1:])))"]
            if subprocess.run([*test, *map(str, sys.version_info[:2])], check=False).returncode == 0:
                return python
    pytest.skip(f"no interpreter of this version that {account.name} may run")


def copy_programs(directory: Path) -> Path:
    """Copy the wheel's PostgreSQL into a directory; return the directory of its programs there."""
    programs = choose().directory
    wheel = programs.parent.parent
    for part in (f"{wheel.name}/{programs.parent.name}", f"{wheel.name}.libs"):
        shutil.copytree(wheel.parent / part, directory / part, ignore=shutil.ignore_patterns("include"))
    return directory / programs.relative_to(wheel.parent)


def test_the_server_runs_within_a_lease_and_not_as_root_and_its_data_outlive_it(server):
    with server.lease():
        ask(server, "WITH made AS (SELECT lo_from_bytea(42, 'of use')) SELECT 1 FROM made")
        owner = Path(f"/proc/{postmaster(server)}").stat().st_uid
    gone_between = is_gone(server)

    with server.lease():
        kept = ask(server, "SELECT convert_from(lo_get(42), 'UTF8')")

    assert owner == Account.of_server(Path("/nowhere")).uid != 0
    assert gone_between
    assert kept == "of use"
    assert is_gone(server)


@pytest.mark.thorough
def test_the_server_is_set_for_what_lcm_and_its_tests_do_on_this_machine(server):
    with server.lease():
        collation = ask(server, "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = 'lcm'")
        superuser = ask(server, "SELECT usesuper FROM pg_user WHERE usename = current_user")
        addresses = ask(server, "SHOW listen_addresses")
        pages = ask(server, "SELECT pg_size_bytes(current_setting('shared_buffers'))")
        as_many_as_memory_allows = ask(server, f"SELECT pg_size_bytes('{shared_buffers(usable_memory())}')")

    # It orders text alike everywhere, and lets tests switch triggers off.
    assert (collation, superuser, addresses) == ("bC.UTF-8", True, "")
    assert pages == as_many_as_memory_allows


@pytest.mark.parametrize(
    ("memory", "expected"), [(2**28, "128MB"), (2**32, "512MB"), (2**35, "1024MB")], ids=("little", "some", "plenty")
)
def test_pages_are_kept_in_a_part_of_the_memory(memory, expected):
    assert shared_buffers(memory) == expected


@pytest.mark.parametrize(
    ("bound", "is_bound"), [("268435456\n", True), ("max\n", False), ("9223372036854771712\n", False)]
)
def test_a_container_has_the_memory_that_it_may_use(tmp_path, bound, is_bound):
    told = tmp_path / "memory.max"
    told.write_text(bound)

    memory = usable_memory((tmp_path / "elsewhere", told))

    assert (memory == 2**28) is is_bound


@pytest.mark.thorough
def test_a_careful_server_writes_through(data_dir):
    server = EmbeddedPostgres(data_dir)

    with server.lease():
        careful = [ask(server, f"SHOW {name}") for name in ("fsync", "synchronous_commit", "full_page_writes")]

    assert careful == ["on", "on", "on"]


@pytest.mark.thorough
def test_the_log_of_the_server_repeats_nothing_of_what_it_is_told(server):
    with server.lease():
        for statement in ("SELECT 'my secret plan'::int", "SELECT my_secret_plan"):
            with pytest.raises(psycopg.Error):
                ask(server, statement)

    logged = "".join(file.read_text() for file in (server.location.cluster / "log").iterdir())
    assert "ready to accept connections" in logged
    assert "secret" not in logged


@pytest.mark.thorough
def test_starters_at_once_share_one_server(data_dir):
    server = EmbeddedPostgres(data_dir)
    users = [another_user(data_dir) for _ in range(3)]
    said = [user.stdout.readline() for user in users]
    pids = {postmaster(server), ask(server, "SELECT pg_read_file('postmaster.pid')::text").split()[0]}

    for user in users:
        user.communicate("\n", timeout=60)

    assert said == ["in\n"] * 3
    assert len({int(pid) for pid in pids}) == 1
    assert [user.returncode for user in users] == [0, 0, 0]
    assert is_gone(server)


@pytest.mark.thorough
def test_the_server_outlives_a_user_while_another_is_left(data_dir, server):
    with server.lease():
        user = another_user(data_dir)
        user.stdout.readline()
        pid = postmaster(server)
        user.communicate("\n", timeout=60)

        assert postmaster(server) == pid
        assert server.is_running()


@pytest.mark.thorough
def test_a_killed_user_leaves_no_server_behind(data_dir, server):
    user = another_user(data_dir)
    user.stdout.readline()

    user.kill()
    user.communicate()

    eventually(lambda: is_gone(server) and not server.has_keeper())


@pytest.mark.thorough
def test_a_killed_server_is_started_again_with_its_data(data_dir, server):
    server = EmbeddedPostgres(data_dir)
    with server.lease():
        with connect(server) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1")
            before = postmaster(server)
            os.kill(before, signal.SIGKILL)
            # This connection is still open: its process has to notice that it is an orphan.
            eventually(lambda: server.is_running() and postmaster(server) != before)

        assert ask(server, "SELECT count(*) FROM kept") == 1


@pytest.mark.thorough
def test_a_killed_keeper_takes_the_server_along_and_both_can_be_had_again(server):
    with server.lease():
        before = postmaster(server)
        keeper = int(Path(f"/proc/{before}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(keeper, signal.SIGKILL)
        eventually(lambda: is_gone(server))

        server.ensure_running()

        assert postmaster(server) != before


@pytest.mark.thorough
@pytest.mark.parametrize("whose", ["nobody's", "a zombie's", "another process's"])
def test_stale_pid_files_do_not_keep_the_server_from_starting(server, whose):
    with server.lease():
        left_behind = [server.location.cluster / "postmaster.pid", server.location.socket_dir / ".s.PGSQL.5432.lock"]
        texts = [file.read_text().split("\n", 1)[1] for file in left_behind]
    other = subprocess.Popen(["sleep", "60"], **Account.of_server(server.location.cluster).process_arguments())
    if whose != "another process's":
        other.kill()
    if whose == "nobody's":
        other.wait()
    for file, text in zip(left_behind, texts, strict=True):
        file.write_text(f"{other.pid}\n{text}")

    try:
        with server.lease():
            alive = ask(server, "SELECT 1")
    finally:
        other.kill()
        other.wait()

    assert alive == 1


@pytest.mark.thorough
def test_an_interrupted_first_start_is_begun_anew(data_dir):
    server = EmbeddedPostgres(data_dir, durable=False)
    half = server.location.server / "cluster.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18")

    with server.lease():
        alive = ask(server, "SELECT 1")

    assert alive == 1
    assert not half.exists()


@pytest.mark.thorough
def test_a_long_path_gets_a_short_socket(data_dir):
    server = EmbeddedPostgres(data_dir / ("deep" * 20) / ("deeper" * 10), durable=False)

    with server.lease():
        alive = ask(server, "SELECT 1")
        mode = server.location.socket_dir.stat().st_mode & 0o777

    assert alive == 1
    assert mode == 0o700
    assert not server.location.socket_dir.exists()


@pytest.mark.thorough
def test_a_socket_directory_that_somebody_else_prepared_is_refused(data_dir):
    server = EmbeddedPostgres(data_dir / ("deep" * 20) / ("deeper" * 10), durable=False)
    trap = server.location.socket_dir
    trap.mkdir(mode=0o777)
    trap.chmod(0o777)

    try:
        with pytest.raises(EmbeddedPostgresError, match="not a private directory"):
            server.hold()
    finally:
        trap.rmdir()


def test_data_of_another_version_are_left_alone(data_dir):
    server = EmbeddedPostgres(data_dir, durable=False)
    server.location.cluster.mkdir(parents=True)
    (server.location.cluster / "PG_VERSION").write_text("12\n")

    with pytest.raises(EmbeddedPostgresError, match="written by PostgreSQL 12"):
        server.hold()

    assert [file.name for file in server.location.cluster.iterdir()] == ["PG_VERSION"]


@pytest.mark.thorough
def test_a_server_that_will_not_run_says_where_to_look(server):
    (server.location.cluster / "postgresql.conf").write_text("no such thing = 1\n")

    with pytest.raises(EmbeddedPostgresError, match="see .*log"):
        server.hold()


def test_a_server_that_cannot_go_on_says_why(server):
    for segment in (server.location.cluster / "pg_wal").glob("0*"):
        segment.unlink()

    with pytest.raises(EmbeddedPostgresError) as refused:
        server.hold()

    assert "(could not locate a valid checkpoint record" in str(refused.value)
    assert re.search("see .*log", str(refused.value))
    # In one sentence, without what each start says of itself.
    assert str(refused.value).count("\n") == 0


@pytest.mark.thorough
@as_root
def test_for_root_the_servers_own_user_may_not_connect(server):
    account = Account.of_server(Path("/nowhere"))
    script = "import psycopg, sys; psycopg.connect(sys.argv[1])"
    with server.lease():
        place = f"host={server.location.socket_dir} port={PORT} user={ROLE} dbname={DATABASE}"
        refused = subprocess.run(
            [python_of(account), "-c", script, place],
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(psycopg.__file__).parent.parent)},
            capture_output=True,
            text=True,
            **account.process_arguments(),
        )
        names = ask(server, "SELECT string_agg(sys_name, ',') FROM pg_ident_file_mappings")

    assert "Peer authentication failed" in refused.stderr
    assert names == "root"


@pytest.mark.thorough
@as_root
def test_for_root_data_that_nobody_can_reach_get_a_refuge(data_dir):
    closed = data_dir / "closed"
    closed.mkdir(mode=0o700)
    refuge = data_dir / "refuge"
    server = EmbeddedPostgres(closed / "var", durable=False, refuge=refuge)

    with server.lease():
        alive = ask(server, "SELECT 1")

    assert alive == 1
    assert server.location.server.resolve().parent == refuge


@pytest.mark.thorough
@as_root
def test_programs_that_nobody_can_reach_are_copied(data_dir):
    closed = data_dir / "closed"
    closed.mkdir(mode=0o700)
    programs = copy_programs(closed)
    account = Account.of_server(Path("/nowhere"))

    copied = make_reachable(Binaries(directory=programs, major=18), account=account, beside=data_dir)

    version = subprocess.run(
        [copied.program("initdb"), "--version"],
        capture_output=True,
        text=True,
        check=True,
        **account.process_arguments(),
    ).stdout
    assert copied.directory.is_relative_to(data_dir)
    assert " 18." in version


@pytest.mark.thorough
@as_root
def test_for_root_programs_and_data_in_one_closed_directory_are_both_reached(data_dir, monkeypatch):
    closed = data_dir / "root"
    closed.mkdir(mode=0o700)
    copy_programs(closed)
    # The keeper finds these before those of this environment, which may lie where everybody can read them.
    (closed / binaries_module.WHEEL / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(closed))
    refuge = data_dir / "refuge"
    server = EmbeddedPostgres(closed / "var", durable=False, refuge=refuge)

    with server.lease():
        alive = ask(server, "SELECT 1")
        program = Path(f"/proc/{postmaster(server)}/exe").readlink()

    assert alive == 1
    assert program.is_relative_to(refuge)


@pytest.mark.thorough
@as_root
def test_an_ordinary_user_runs_the_server_directly(data_dir):
    server = EmbeddedPostgres(data_dir, durable=False)
    account = Account.of_server(Path("/nowhere"))
    os.chown(data_dir, account.uid, account.gid)

    user = another_user(data_dir, python=python_of(account), **account.process_arguments())
    said = user.stdout.readline()
    owner = Path(f"/proc/{postmaster(server)}").stat().st_uid
    user.communicate("\n", timeout=60)

    assert said == "in\n"
    assert owner == account.uid
    assert user.returncode == 0
    assert is_gone(server)


@pytest.mark.parametrize(("version", "usable"), [("15.18", False), ("16.2", True), ("19devel", True)])
def test_a_server_of_the_machine_is_the_second_choice_if_new_enough(tmp_path, monkeypatch, version, usable):
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(binaries_module, "WHEEL", "no_such_package")
    monkeypatch.setattr(binaries_module, "PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path))

    if usable:
        assert choose().directory == tmp_path
    else:
        with pytest.raises(EmbeddedPostgresError, match="16 or newer"):
            choose()


def test_the_wheel_comes_first():
    assert choose().directory.parent.name == "pginstall18"
