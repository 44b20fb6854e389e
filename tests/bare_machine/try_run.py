"""Run `make run` as a newcomer does: wait until it serves, run the commands that it prints, press Ctrl-C.

For Python's standard library alone, as nothing else is there. Exit status 0: everything worked.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

SECONDS_TO_START = 900
SECONDS_TO_STOP = 60


def main() -> int:
    began = time.monotonic()
    running = subprocess.Popen(
        ["make", "run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    lines: list[str] = []
    reader = threading.Thread(target=lambda: [note(lines, line) for line in running.stdout], daemon=True)
    reader.start()
    while not any(line.startswith("  ") for line in after_try(lines)):
        if running.poll() is not None or time.monotonic() - began > SECONDS_TO_START:
            print(f"FAILED: `make run` did not serve; its status is {running.poll()}.")
            return 1
        time.sleep(0.2)
    time.sleep(1)
    print(f"-- it serves, {time.monotonic() - began:.0f} s after the command --")
    commands = [line.strip() for line in after_try(lines) if line.startswith("  ")]
    failed = [command for command in commands if not works(command)]
    os.killpg(running.pid, signal.SIGINT)
    status = running.wait(timeout=SECONDS_TO_STOP)
    reader.join(timeout=10)
    left = [name for name in processes() if "lcmsite" in name or "postgres" in name]
    print(f"-- Ctrl-C: status {status}, processes left: {left or 'none'} --")
    good = commands and not failed and not left and any("LCM has stopped." in line for line in lines)
    print("OK" if good else f"FAILED: {failed or left or 'see above'}")
    return 0 if good else 1


def after_try(lines: list[str]) -> list[str]:
    """What was printed behind the word that the commands follow."""
    starts = [number for number, line in enumerate(lines) if line.startswith("Try:")]
    return lines[starts[0] + 1 :] if starts else []


def note(lines: list[str], line: str) -> None:
    lines.append(line.rstrip("\n"))
    print(f"| {lines[-1]}", flush=True)


def works(command: str) -> bool:
    """Whether the command succeeds; one with curl is sent without it where there is none."""
    if command.startswith("curl") and shutil.which("curl") is None:
        _, _, header, url = shlex.split(command)
        name, value = header.split(": ", 1)
        with urllib.request.urlopen(urllib.request.Request(url, headers={name: value}), timeout=60) as response:
            status, said = response.status, response.read().decode()
    else:
        done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
        status, said = done.returncode, done.stdout + done.stderr
    print(f"$ {command}\n  status {status}, {len(said)} characters: {said[:100]!r}")
    return status in (0, 200) and bool(said)


def processes() -> list[str]:
    """The command lines of all processes on this machine."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
