"""A run of the tests is the same wherever it is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

PROJECT = Path(__file__).resolve().parents[2]
IN_IT = "test_no_setting_of_the_caller_is_read_but_the_address_of_a_server"
THEIRS = {
    "LCM_LOG_LEVEL": "ERROR",
    "LCM_FRESH_TAIL_COUNT": "3",
    "LCM_S3_BUCKET": "bucket",
    "LCM_REDIS_URL": "redis://127.0.0.1:1/0",
    "LCM_DATA_DIR": "/nowhere",
    "LCM_NO_SETTING": "1",
}


def test_no_setting_of_the_caller_is_read_but_the_address_of_a_server():
    # The directory is that of the run's own server, which its workers find there.
    assert settings.ENVIRONMENT.given <= {"LCM_DATABASE_URL", "LCM_DATA_DIR"}
    assert settings.CONFIGURATION_PROBLEMS == []


@pytest.mark.thorough
def test_a_run_in_an_environment_with_settings_of_a_site_passes_as_well():
    foreign = ("LCM_", "PYTEST_", "DJANGO_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}

    done = subprocess.run(
        [sys.executable, "-m", "pytest", f"{__file__}::{IN_IT}",
         "-q", "-n", "0", "-p", "no:cacheprovider"],
        cwd=PROJECT, env=environment | THEIRS | {"LCM_DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "1 passed" in done.stdout, done.stdout + done.stderr
