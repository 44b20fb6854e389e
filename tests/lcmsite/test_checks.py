"""What is wrong with the settings is shown by Django's system checks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks

from lcmsite.environment import load_secret_key

PROJECT = Path(__file__).resolve().parents[2]


def manage_check(tmp_path: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LCM_")}
    return subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=PROJECT,
        env=clean | {"LCM_DATA_DIR": str(tmp_path / "var")} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.thorough
def test_good_settings_pass_and_the_names_of_the_command_line_are_known(tmp_path):
    of_the_command_line = {"LCM_API_KEY": "something", "LCM_WORKSPACE": "something"}

    checked = manage_check(tmp_path, LCM_CONTEXT_THRESHOLD="0.5", LCM_PORT="8001", **of_the_command_line)

    assert checked.returncode == 0, checked.stderr


@pytest.mark.thorough
def test_each_problem_is_an_error_with_an_id_and_a_hint(tmp_path):
    checked = manage_check(
        tmp_path, LCM_FRESH_TAIL_CUONT="4", LCM_PORT="none", LCM_DATABASE_URL="mysql://me:hunter2@host/d"
    )

    assert checked.returncode == 1
    assert "(lcm.E001) LCM_FRESH_TAIL_CUONT is not a setting of LCM." in checked.stderr
    assert "HINT: Did you mean LCM_FRESH_TAIL_COUNT?" in checked.stderr
    assert "(lcm.E002) LCM_PORT" in checked.stderr
    assert "(lcm.E002) LCM_DATABASE_URL" in checked.stderr
    assert "hunter2" not in checked.stderr


def test_a_tokenizer_that_nobody_knows_is_an_error_and_not_an_estimate(settings):
    settings.LCM = {"encoding": "nonsense"}

    [error] = [each for each in run_checks() if each.id == "lcm.E004"]

    assert error.is_serious()
    assert "LCM_ENCODING" in error.msg
    assert "o200k_base" in error.hint


@pytest.mark.thorough
def test_a_data_directory_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("not a directory")

    checked = manage_check(tmp_path, LCM_DATA_DIR=str(tmp_path / "file" / "var"))

    assert checked.returncode == 1
    assert "(lcm.E003)" in checked.stderr


def test_the_secret_key_is_made_once_and_kept_private(tmp_path):
    data_dir = tmp_path / "var"

    first = load_secret_key(data_dir)

    assert load_secret_key(data_dir) == first
    assert len(first) >= 50
    assert (data_dir / "secret_key").stat().st_mode & 0o777 == 0o600


@pytest.mark.thorough
def test_processes_that_start_at_once_come_to_the_same_secret_key(tmp_path):
    script = "import sys; from pathlib import Path; from lcmsite.environment import load_secret_key as k; "
    script += "input(); print(k(Path(sys.argv[1])))"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "var")],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]

    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    keys = {racer.communicate()[0] for racer in racers}

    assert len(keys) == 1
    assert [file.name for file in (tmp_path / "var").iterdir()] == ["secret_key"]
