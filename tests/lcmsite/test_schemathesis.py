"""The live server does what its OpenAPI document says, whatever it is asked; schemathesis asks, with all its checks.

Alone, and for long: `.venv/bin/python -m pytest tests/lcmsite/test_schemathesis.py -m slow`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.processes import PROJECT, environment, start_server, stop_server
from tests.lcmsite.fuzzing.world import two_workspaces
from tests.lcmsite.operating import answers, eventually, free_port

PROFILE = Path(__file__).parent / "fuzzing"


@pytest.fixture
def site(committed_db, settings, data_dir):
    """A web process as `lcm up` starts it, on the test database; its port and two keys."""
    # Where the server looks for files.
    settings.MEDIA_ROOT = data_dir / "files"
    keys = two_workspaces()
    port = free_port()
    names = {"LCM_DATA_DIR": str(data_dir), "LCM_SECRET_KEY": settings.SECRET_KEY}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = start_server("web", port, environment() | names, **quiet)
    try:
        eventually(lambda: answers(port), seconds=60)
        yield port, keys
    finally:
        stop_server(running)


def asked(site, tmp_path, *options):
    """What schemathesis says when it has asked the site, with its exit status."""
    port, keys = site
    # Two who must not see each other's things.
    users = [
        {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}]}
        for name, key in zip(("ours", "theirs"), keys, strict=True)
    ]
    (tmp_path / "users.json").write_text(json.dumps({"auth": users}))
    config = tmp_path / "schemathesis.toml"
    config.write_text((PROFILE / "schemathesis.toml").read_text())
    program = Path(sys.executable).with_name("st")
    run = subprocess.run(
        [program, "--config-file", config, "run", f"http://127.0.0.1:{port}/api/v1/schema/", "--no-color", *options],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "SCHEMATHESIS_HOOKS": "tests.lcmsite.fuzzing.checks",
            "NO_PROXY": "127.0.0.1",
        },
        capture_output=True,
        text=True,
    )
    return run.returncode, run.stdout + run.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("phase", ["examples", "stateful"])
def test_the_server_answers_as_its_document_says(site, tmp_path, phase):
    exit_code, said = asked(site, tmp_path, "--phases", phase, "-n", "4", "--seed", "4")

    assert exit_code == 0, said


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_server_answers_as_its_document_says_for_long(site, tmp_path, seed):
    exit_code, said = asked(site, tmp_path, "--continue-on-failure", "-n", "25", "--seed", str(seed))

    assert exit_code == 0, said
