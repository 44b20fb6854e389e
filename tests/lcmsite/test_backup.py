"""A backup is everything, or no backup; and it comes back when all else is gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from psycopg.conninfo import make_conninfo
from structlog.testing import capture_logs

from compaction.engine import CompactionEngine
from conversations.errors import Conflict, Invalid, Unavailable
from conversations.files.large_files import LargeFileService
from conversations.models import AuditEntry
from integrity.retention.erasure import Erasures
from lcmsite.access import workspaces
from lcmsite.catalogue.problems import FINDINGS_EXIT_CODE
from lcmsite.cli.cli_session import OPERATOR
from lcmsite.ops.backup.backup_leftovers import sweep_databases, trial_database, unfinished
from lcmsite.ops.backup.backups import back_up, restore
from lcmsite.ops.backup.manifest import DUMP, Manifest
from lcmsite.ops.backup.programs import Database
from tests.conversations.appending import at_once
from tests.factories import a_conversation
from tests.integrity.erasing import erased
from tests.lcmsite.operating import PROJECT, run_lcm


@pytest.fixture
def history(committed_db: None) -> int:
    """A compacted conversation with a file, in the database and the storage of the tests."""
    texts = [f"Turn {number}: we keep {'backups ' * 40}" for number in range(60)]
    conversation_id = a_conversation(*texts).conversation_id
    LargeFileService.from_settings().store(conversation_id=conversation_id, content=b"a" * 3_000_000, file_name="a.bin")
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


@pytest.mark.thorough
def test_a_backup_is_restored_on_trial_before_it_is_called_one(history, tmp_path, monkeypatch):
    workspaces.create(OPERATOR, name="--json")
    # The trial has a database of its own, however that of the site is given.
    for name in ("LCM_DATABASE_URL_FILE", "LCM_SECRET_KEY_FILE", "LCM_API_KEY_FILE"):
        monkeypatch.setenv(name, "/run/secrets/of_the_site")

    report = back_up(tmp_path / "backup", scope=OPERATOR)

    assert report.is_verified
    assert (report.holdings.conversations, report.holdings.messages, report.holdings.files) == (1, 60, 1)
    assert report.holdings.summaries > 0
    assert Manifest.read(tmp_path / "backup").holdings == report.holdings
    assert AuditEntry.objects.get(act="backup").actor == "operator"


@pytest.mark.thorough
def test_a_backup_of_damaged_data_is_not_kept(history, tmp_path):
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE messages SET content = 'something else' WHERE seq = 3")
        cursor.execute("SET session_replication_role = origin")

    with pytest.raises(Conflict, match="workspace 'default' is not clean") as refused:
        back_up(tmp_path / "backup", scope=OPERATOR)

    assert (refused.value.code, refused.value.retryable) == ("damaged", False)
    assert {path.name for path in tmp_path.iterdir()} == {"files"}
    assert back_up(tmp_path / "backup", verify=False, scope=OPERATOR).holdings.messages == 60


def test_a_backup_and_the_files_of_a_site_are_readable_by_their_owner_alone(history, tmp_path):
    back_up(tmp_path / "backup", verify=False, scope=OPERATOR)

    modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.rglob("*")}
    assert {DUMP, "manifest.json"} < modes.keys()
    assert set(modes.values()) == {0}


@pytest.mark.thorough
def test_the_next_backup_sweeps_what_a_killed_one_has_left_and_nothing_that_is_in_use(history, tmp_path):
    database = Database.of(connection.connection)
    left = kill_in_its_trial(database, tmp_path / "killed")
    with trial_database(database) as in_use, unfinished(tmp_path / "other") as working:
        back_up(tmp_path / "backup", verify=False, scope=OPERATOR)
        kept = [name for name in trials(database) if name == in_use.parameters["dbname"]]
        kept_directory = working.is_dir()

    assert len(left) == 2
    assert trials(database) == []
    assert kept and kept_directory
    assert {path.name for path in tmp_path.iterdir()} == {"files", "backup"}


def test_a_leftover_that_cannot_be_dropped_is_logged_and_hinders_no_backup(history, tmp_path):
    connection.ensure_connection()
    database = Database.of(connection.connection)
    with database.connect(autocommit=True) as server:
        (oid,) = server.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
        kept, dropped = (f"lcm_verify_{oid}_0000000{number}" for number in range(2))
        # Not even a superuser may drop a template.
        server.execute(f"CREATE DATABASE {kept} TEMPLATE template0 IS_TEMPLATE true")
        server.execute(f"CREATE DATABASE {dropped} TEMPLATE template0")
        try:
            with capture_logs() as logged:
                back_up(tmp_path / "backup", verify=False, scope=OPERATOR)
            left = trials(database)
        finally:
            server.execute(f"ALTER DATABASE {kept} IS_TEMPLATE false")
            sweep_databases(database)

    assert left == [kept]
    assert [each["database"] for each in logged if each["event"] == "trial_database_not_dropped"] == [kept]
    assert Manifest.read(tmp_path / "backup").holdings.messages == 60
    assert trials(database) == []


def kill_in_its_trial(database: Database, directory: Path) -> list[str]:
    """Kill a process that works as a backup does; return the names of what it has left."""
    script = (
        "import sys, time, django\n"
        "django.setup()\n"
        "from pathlib import Path\n"
        "from lcmsite.ops.backup.backup_leftovers import trial_database, unfinished\n"
        "from lcmsite.ops.backup.programs import Database\n"
        "import psycopg\n"
        "with psycopg.connect(sys.argv[1]) as connection:\n"
        "    database = Database.of(connection)\n"
        "with unfinished(Path(sys.argv[2])) as working, trial_database(database) as trial:\n"
        "    print(working.name, trial.parameters['dbname'], flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, make_conninfo(**database.parameters, password=database.password), directory],
        cwd=PROJECT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "lcmsite.settings"},
        stdout=subprocess.PIPE,
        text=True,
    )
    names = process.stdout.readline().split()
    process.kill()
    process.communicate()
    return names


def trials(database: Database) -> list[str]:
    with database.connect() as server:
        rows = server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, 'lcm_verify_')").fetchall()
    return [name for (name,) in rows]


def test_a_backup_is_on_disk_before_it_has_its_name(history, tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def note(handle: int) -> None:
        synced.append((os.fstat(handle).st_ino, (tmp_path / "backup").exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    back_up(tmp_path / "backup", verify=False, scope=OPERATOR)

    of_it = [tmp_path / "backup", *(tmp_path / "backup").rglob("*")]
    assert {(path.stat().st_ino, False) for path in of_it} <= set(synced)
    assert synced[-1] == (tmp_path.stat().st_ino, True)


def test_a_file_that_the_storage_has_lost_is_named(history, tmp_path):
    uri = LargeFileService.from_settings().store(conversation_id=history, content=b"lost").storage_uri
    default_storage.delete(uri)

    report = back_up(tmp_path / "backup", verify=False, scope=OPERATOR)

    assert report.damaged_files == (uri,)


def test_a_backup_beside_an_erasure_is_not_kept(history, tmp_path, monkeypatch):
    dump = Database.dump

    def dump_and_erase(*given, **named):
        dump(*given, **named)
        at_once(lambda _: erased(Erasures.from_settings(), history), workers=1)

    monkeypatch.setattr(Database, "dump", dump_and_erase)
    with pytest.raises(Unavailable, match="erased"):
        back_up(tmp_path / "backup", verify=False, scope=OPERATOR)

    assert not (tmp_path / "backup").exists()


def test_a_backup_writes_over_nothing(history, tmp_path):
    (tmp_path / "mine").write_text("mine")

    for directory in (tmp_path, tmp_path / "mine"):
        with pytest.raises(Conflict, match="not empty"):
            back_up(directory, scope=OPERATOR)

    assert (tmp_path / "mine").read_text() == "mine"


def test_what_is_no_whole_backup_is_refused_before_anything_is_touched(history, tmp_path):
    whole = tmp_path / "backup"
    back_up(whole, verify=False, scope=OPERATOR)
    dump, manifest = (whole / DUMP).read_bytes(), (whole / "manifest.json").read_bytes()
    later = manifest.replace(b'"migrations": [', b'"migrations": [["conversations", "9001_later"], ')
    harms = {
        "cut": (DUMP, dump[:-1], "not whole|damaged"),
        "changed": (DUMP, dump[:-1] + b"!", "not whole|damaged"),
        "missing": (DUMP, None, "not whole|damaged"),
        "no manifest": ("manifest.json", None, "holds no"),
        "a later version": ("manifest.json", manifest.replace(b'"version": 1', b'"version": 2'), "later version"),
        "a later migration": ("manifest.json", later, "later version"),
        "not JSON": ("manifest.json", b"{", "cannot be read"),
        "another path": ("manifest.json", manifest.replace(b'"files/', b'"files/../files/', 1), r"pieces\.1\.path"),
        "a wrong type": ("manifest.json", manifest.replace(b'"path": ', b'"path": 1, "was": ', 1), r"pieces\.0\.path"),
        "a file left out": ("manifest.json", manifest.replace(b'"files": 1', b'"files": 2'), "does not list all"),
        "endless": (DUMP, Path("/dev/zero"), "damaged"),
    }

    for harm, (name, content, words) in harms.items():
        backup = shutil.copytree(whole, tmp_path / harm)
        (backup / name).unlink()
        if isinstance(content, Path):
            (backup / name).symlink_to(content)
        elif content is not None:
            (backup / name).write_bytes(content)
        with pytest.raises(Invalid, match=words):
            restore(backup, scope=OPERATOR)


def test_a_backup_replaces_nothing(history, tmp_path):
    back_up(tmp_path / "backup", verify=False, scope=OPERATOR)

    with pytest.raises(Conflict, match="holds conversations"):
        restore(tmp_path / "backup", scope=OPERATOR)


@pytest.mark.thorough
def test_all_of_it_comes_back_after_the_data_directory_was_deleted(history, tmp_path, fresh_dir):
    backup = tmp_path / "backup"
    made = back_up(backup, verify=False, scope=OPERATOR)

    restored = run_lcm(fresh_dir, "--json", "restore", str(backup))
    again = run_lcm(fresh_dir, "--json", "backup", str(tmp_path / "again"))

    assert restored.returncode == 0, restored.stderr
    assert json.loads(restored.stdout)["holdings"]["digest"] == made.holdings.digest
    # Its trial runs the checker on what is in the restored database, with the restored files.
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["holdings"]["digest"] == made.holdings.digest


@pytest.mark.thorough
def test_a_restore_that_failed_to_store_the_files_can_be_repeated(history, tmp_path, fresh_dir):
    back_up(tmp_path / "backup", verify=False, scope=OPERATOR)
    (fresh_dir / "files").touch()

    refused = run_lcm(fresh_dir, "restore", str(tmp_path / "backup"))
    (fresh_dir / "files").unlink()
    restored = run_lcm(fresh_dir, "restore", str(tmp_path / "backup"))

    assert (refused.returncode, restored.returncode) == (6, 0)
    assert "cannot be stored" in refused.stderr


@pytest.mark.thorough
def test_bytes_that_were_damaged_in_the_backup_replace_no_file(history, tmp_path, fresh_dir):
    uri = LargeFileService.from_settings().store(conversation_id=history, content=b"whole").storage_uri
    Path(default_storage.path(uri)).write_bytes(b"harmed")
    back_up(tmp_path / "backup", verify=False, scope=OPERATOR)
    kept = fresh_dir / "files" / uri
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"whole")

    restored = run_lcm(fresh_dir, "restore", str(tmp_path / "backup"))

    assert restored.returncode == FINDINGS_EXIT_CODE, restored.stderr
    assert kept.read_bytes() == b"whole"
