"""A pooler that hands out transactions is refused at the start, in one sentence; one that hands out sessions is not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from lcmsite.embedded_postgres.account import Account
from lcmsite.embedded_postgres.binaries import choose, make_reachable
from tests.guardian import a_directory
from tests.lcmsite.operating import eventually, free_port, run_lcm

pytestmark = pytest.mark.thorough

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")

CONFIGURATION = """
[databases]
lcm = host={directory} port=5432 dbname=postgres user=lcm
{more}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
server_round_robin = {round_robin}
ignore_startup_parameters = extra_float_digits
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """The directory of a PostgreSQL's socket, at which anybody may come in."""
    directory, account = a_directory(), Account.of_server(Path("/nowhere"))
    directory.chmod(0o755)
    programs = make_reachable(choose(), account=account, beside=directory)
    data = directory / "data"
    data.mkdir(mode=0o700)
    account.take_ownership(directory)
    as_account = account.process_arguments()
    initdb = [programs.program("initdb"), "-D", data, "--username=lcm", "--auth=trust", "--no-sync"]
    subprocess.run(initdb, cwd="/", check=True, stdout=subprocess.DEVNULL, **as_account)
    postgres = [programs.program("postgres"), "-D", data, "-k", directory, "-p", "5432", "-c", "listen_addresses="]
    running = subprocess.Popen([*postgres, "-c", "fsync=off"], cwd="/", stderr=subprocess.DEVNULL, **as_account)
    eventually(lambda: answers(f"host={directory} port=5432 user=lcm dbname=postgres"))
    yield directory
    running.terminate()
    running.wait(timeout=30)
    shutil.rmtree(directory)


@pytest.fixture
def pooler(server: Path) -> Iterator[Callable[..., str]]:
    """Starts PgBouncer in front of the server; returns its address."""
    started: list[subprocess.Popen[bytes]] = []
    # It refuses root.
    as_account = Account.of_server(Path("/nowhere")).process_arguments()

    def start(mode: str, *, size: int = 5, round_robin: int = 0, more: str = "") -> str:
        port, file = free_port(), server / "pgbouncer.ini"
        file.write_text(
            CONFIGURATION.format(directory=server, port=port, mode=mode, size=size, round_robin=round_robin, more=more)
        )
        started.append(subprocess.Popen([PGBOUNCER, "-q", file], cwd="/", stderr=subprocess.DEVNULL, **as_account))
        address = f"postgres://lcm@127.0.0.1:{port}/lcm"
        eventually(lambda: answers(address))
        return address

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=30)


def answers(address: str) -> bool:
    try:
        psycopg.connect(address, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def busy(address: str, *, sessions: int) -> None:
    """Have the pooler open so many sessions of the server, all of them free again."""
    together = [psycopg.connect(address) for _ in range(sessions)]
    for each in together:
        each.execute("SELECT 1", prepare=False)
    for each in together:
        each.close()


@needs_pgbouncer
@pytest.mark.parametrize(
    ("size", "round_robin", "sessions"), [(5, 0, 1), (1, 0, 1), (5, 1, 2), (5, 1, 3)], ids=lambda each: str(each)
)
def test_transactions_handed_out_by_a_pooler_are_refused_at_the_start(pooler, tmp_path, size, round_robin, sessions):
    address = pooler("transaction", size=size, round_robin=round_robin)
    busy(address, sessions=sessions)

    started = run_lcm(
        tmp_path, "up", "--port", str(free_port()), "--no-mcp", LCM_DATABASE_URL=address, LCM_GATEWAY_PORT="0"
    )

    assert started.returncode == 2
    assert "pool_mode=transaction" in started.stderr
    assert started.stderr.startswith("lcm: LCM_DATABASE_URL: the database at 127.0.0.1:")
    assert len(started.stderr.splitlines()) == 1


@needs_pgbouncer
def test_a_migration_is_refused_too_and_statements_like_transactions(pooler, tmp_path):
    refused = run_lcm(tmp_path, "migrate", LCM_DATABASE_URL=pooler("statement"))

    assert (refused.returncode, "misconfigured" in refused.stderr) == (2, True)


@needs_pgbouncer
def test_sessions_handed_out_by_a_pooler_are_good_enough(pooler, tmp_path):
    migrated = run_lcm(tmp_path, "migrate", LCM_DATABASE_URL=pooler("session"), LCM_LOG_LEVEL="ERROR")

    assert migrated.returncode == 0, migrated.stderr


@needs_pgbouncer
def test_a_backup_is_verified_through_a_pooler_that_knows_all_databases(server, pooler, tmp_path):
    of_one, of_all = pooler("session"), pooler("session", more=f"* = host={server} port=5432 user=lcm")
    run_lcm(tmp_path, "migrate", LCM_DATABASE_URL=of_one)

    refused = run_lcm(tmp_path, "backup", str(tmp_path / "refused"), LCM_DATABASE_URL=of_one)
    verified = run_lcm(tmp_path, "backup", str(tmp_path / "verified"), LCM_DATABASE_URL=of_all)

    assert (refused.returncode, "With PgBouncer, use the server's own port" in refused.stderr) == (6, True)
    assert verified.returncode == 0, verified.stderr
