"""`lcm up` where it cannot start, or is stopped before it has: one sentence, an exit status, nothing left behind."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from lcmsite.embedded_postgres.lease import EmbeddedPostgres
from tests.lcmsite.operating import PROJECT, eventually, process_of, processes_of


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where somebody listens and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


POSTGRES = ("LCM_DATABASE_URL", "postgres://me:hunter2@127.0.0.1:{port}/lcm")
REDIS = ("LCM_REDIS_URL", "redis://me:hunter2@127.0.0.1:{port}/0")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("setting", "url", "is_silent"),
    [
        pytest.param(*POSTGRES, False, id="closed PostgreSQL"),
        pytest.param(*REDIS, True, id="silent Redis"),
        pytest.param(*POSTGRES, True, id="silent PostgreSQL"),
        pytest.param(*REDIS, False, id="closed Redis"),
    ],
)
def test_a_server_that_does_not_answer_is_named_before_anything_starts(
    up, data_dir, port, silent_port, setting, url, is_silent
):
    there = silent_port if is_silent else port
    running = up("--port", "0", **{setting: url.format(port=there)})

    said, errors = running.communicate(timeout=60)

    assert running.returncode == 6
    assert errors.count("\n") == 1
    assert errors.startswith(f"lcm: {setting}: ")
    assert f"at 127.0.0.1:{there} does not respond" in errors
    assert "hunter2" not in said + errors
    assert processes_of(data_dir) == []
    assert not EmbeddedPostgres(data_dir).is_running()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "given", "words"),
    [
        (["--prot", "8000"], {}, "unrecognized arguments: --prot 8000"),
        ([], {"LCM_REDIS_URL": "me:hunter2@127.0.0.1:6379"}, "LCM_REDIS_URL"),
        # Looked for in the same way, each by a test of its own beside the code that finds it.
        (["--host", "192.0.2.1"], {}, "LCM_HOST"),
        ([], {"LCM_ENCODING": "nonsense"}, "LCM_ENCODING: no tokenizer"),
        ([], {"LCM_PROT": "8000"}, "LCM_PROT is not a setting of LCM. Did you mean LCM_PORT?"),
        ([], {"LCM_WEB_WORKERS": "many"}, "LCM does not start until this is corrected"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_right_ends_as_bad_input_ends_everywhere(up, data_dir, arguments, given, words):
    running = up(*arguments, **given)

    said, errors = running.communicate(timeout=60)

    assert running.returncode == 2
    assert errors.count("\n") == 1
    assert words in errors
    assert "hunter2" not in said + errors
    assert processes_of(data_dir) == []


@pytest.mark.thorough
def test_a_data_directory_that_cannot_be_written_is_named(up, data_dir, tmp_path):
    # Root may write in any directory, but not below a file.
    (tmp_path / "file").touch()
    running = up("--no-web", LCM_DATA_DIR=str(tmp_path / "file" / "data"), LCM_SECRET_KEY="s" * 50)

    _, errors = running.communicate(timeout=60)

    assert running.returncode == 6
    assert f"The log {tmp_path}/file/data/lcm.log cannot be written: Not a directory." in errors


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seconds", [0.2, 0.4, 0.6])
def test_ctrl_c_while_the_program_is_loaded_is_quiet(tmp_path, seconds):
    # It says when it heeds the signal first.
    program = (
        "import signal, sys; from lcmsite.cli import main; heed = signal.signal; "
        "signal.signal = lambda *given: (heed(*given), print(1, flush=True))[0]; sys.exit(main())"
    )
    # As a terminal starts it: SIGINT is for it.
    running = subprocess.Popen(
        [sys.executable, "-c", program, "up", "--port", "0", "--mcp-port", "0", "--gateway-port", "0"],
        cwd=PROJECT,
        env={"LCM_DATA_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    running.stdout.readline()
    time.sleep(seconds)

    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)

    assert (running.returncode, errors) == (130, "")
    assert processes_of(tmp_path) == []


@pytest.mark.thorough
def test_ctrl_c_while_the_database_starts_is_quiet_and_leaves_no_process(up, fresh_dir):
    running = up(LCM_DATA_DIR=str(fresh_dir))
    eventually(lambda: process_of(fresh_dir, ".keeper") is not None)

    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)

    assert (running.returncode, errors) == (130, "")
    assert processes_of(fresh_dir) == []
