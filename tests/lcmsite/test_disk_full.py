"""A full disk stops appends with a refusal that says so, and nothing else: what is stored is read on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from lcmsite.embedded_postgres.location import Location
from lcmsite.embedded_postgres.space import RESERVE_BYTES
from lcmsite.ops.metrics.directory import VARIABLE
from lcmsite.ops.supervisor import Process
from lcmsite.server.serving import bind_socket
from tests.guardian import a_directory
from tests.lcmsite.operating import Site, a_key_in, end, eventually, processes_of, until_ready

pytestmark = pytest.mark.thorough

MEGABYTE = 1024**2


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of its own with room for a server and little more."""
    disk = a_directory()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=800m,mode=755", "tmpfs", disk], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        disk.rmdir()
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield disk
    for process in processes_of(disk):
        process.kill()
    eventually(lambda: subprocess.run(["umount", disk], capture_output=True).returncode == 0)
    disk.rmdir()


def fill(disk: Path) -> Path:
    """Take all the room there is, at once, as another program may."""
    filler = disk / "filler"
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
    for size in (MEGABYTE, 4096):
        with suppress(OSError):
            while os.write(descriptor, bytes(size)):
                pass
    os.close(descriptor)
    return filler


def code_of_append(site: Site, text: str) -> str:
    reply = site.ask("POST", "conversations/1/messages/", {"messages": [{"role": "user", "content": text}]})
    return "stored" if reply.is_success else f"{reply.status_code} {reply.json()['code']}"


def postmaster_of(data_dir: Path) -> str:
    return (Location(data_dir).cluster / "postmaster.pid").read_text().split()[0]


def test_on_a_full_disk_appends_are_refused_reading_goes_on_and_room_cures_it(up, small_disk, port):
    running = up(LCM_DATA_DIR=str(small_disk), LCM_LOG_LEVEL="ERROR")
    until_ready(running)
    site = Site(port, a_key_in(small_disk))
    site.post("conversations/", {"session_id": "full"})
    assert code_of_append(site, "said in time") == "stored"
    before = postmaster_of(small_disk)
    reserve = Location(small_disk).server / "reserve"
    assert reserve.stat().st_size == RESERVE_BYTES

    filler = fill(small_disk)
    # An append may fail before the reserve is given up, and another be stored before the server is read-only.
    eventually(lambda: reserve.stat().st_size == 0)
    eventually(lambda: code_of_append(site, "said too late " + 1000 * "word ") == "503 disk_full")
    refused = {code_of_append(site, f"{number} said too late " + 1000 * "word ") for number in range(50)}
    read = [message["content"] for message in site.get("conversations/1/messages/")["items"]]
    context = site.get("conversations/1/context/?budget=4000")
    found = site.get("conversations/1/matches/?query=said")
    with_nothing_left = postmaster_of(small_disk)
    filler.unlink()
    eventually(lambda: code_of_append(site, "said again") == "stored")

    assert refused == {"503 disk_full"}
    assert read[0] == "said in time"
    assert context and found
    assert with_nothing_left == before
    eventually(lambda: reserve.stat().st_size == RESERVE_BYTES)


def test_a_site_starts_on_a_full_disk_and_shows_what_is_stored(up, small_disk, port):
    running = up(LCM_DATA_DIR=str(small_disk), LCM_LOG_LEVEL="ERROR")
    until_ready(running)
    site = Site(port, a_key_in(small_disk))
    site.post("conversations/", {"session_id": "full"})
    code_of_append(site, "said in time")
    end(running)

    fill(small_disk)
    until_ready(up(LCM_DATA_DIR=str(small_disk), LCM_LOG_LEVEL="ERROR"))

    assert [message["content"] for message in site.get("conversations/1/messages/")["items"]] == ["said in time"]
    assert code_of_append(site, "said too late") == "503 disk_full"


def test_a_process_runs_on_though_the_directory_for_its_counts_is_full(small_disk, data_dir, port, monkeypatch):
    fill(small_disk)
    monkeypatch.setenv(VARIABLE, str(small_disk))
    monkeypatch.setenv("LCM_DATA_DIR", str(data_dir))
    process = Process("web", ("web",), bind_socket("127.0.0.1", port))
    process.start()

    def responds() -> bool:
        with suppress(httpx2.TransportError):
            return bool(Site(port).text("healthz"))
        return False

    try:
        eventually(lambda: responds() or process.running.poll() is not None)
        assert process.running.poll() is None
    finally:
        process.ask_to_stop()
        process.wait(until=0)
