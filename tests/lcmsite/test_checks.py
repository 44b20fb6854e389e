"""What is wrong with the settings is shown by Django's system checks."""

import subprocess
import sys

import pytest
from django.core.checks import run_checks

from lcmsite.environment import Environment, load_secret_key
from tests.lcmsite.operating import PROJECT, run_python


def test_each_problem_of_the_environment_is_an_error_with_a_hint_and_without_a_secret(settings):
    unknown = {"LCM_FRESH_TAIL_CUONT": "4", "LCM_ZZZ": "1"}
    wrong = unknown | {"LCM_PORT": "none", "LCM_DATABASE_URL": "mysql://me:hunter2@host/d"}
    settings.CONFIGURATION_PROBLEMS = Environment.read(wrong).problems

    found = [each for each in run_checks() if each.id in ("lcm.E001", "lcm.E002")]

    assert all(each.is_serious() and each.hint for each in found)
    assert {name for name in wrong if name in str(found)} == wrong.keys()
    assert "Did you mean LCM_FRESH_TAIL_COUNT? If not, remove it; " in str(found) and "hunter2" not in str(found)
    assert "hint='Remove it; README.md lists every setting.'" in str(found)


def test_a_tokenizer_that_nobody_knows_is_an_error_and_not_an_estimate(settings):
    settings.LCM = {"encoding": "nonsense"}

    [error] = [each for each in run_checks() if each.id == "lcm.E004"]

    assert error.is_serious() and "LCM_ENCODING" in error.msg and "o200k_base" in error.hint


@pytest.mark.thorough
def test_a_data_directory_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("not a directory")

    checked = run_python("manage.py", "check", LCM_DATA_DIR=str(tmp_path / "file" / "var"))

    assert checked.returncode == 1 and "(lcm.E003)" in checked.stderr


def test_the_secret_key_is_made_once_and_kept_private(tmp_path):
    data_dir = tmp_path / "var"

    first = load_secret_key(data_dir)

    assert load_secret_key(data_dir) == first and len(first) >= 50
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

    assert (len(keys), [file.name for file in (tmp_path / "var").iterdir()]) == (1, ["secret_key"])
