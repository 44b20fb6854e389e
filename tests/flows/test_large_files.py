"""Large files, over a real server: whatever they are, however they come, whoever dies meanwhile."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil
import pytest

from conversations.models import LargeFile, UploadChunk
from tests.conversations.file_samples import HOSTILE, KINDS, LIES
from tests.factories import a_conversation
from tests.flows.processes import PROJECT, environment, start_server, stop, wait_until
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.operating import free_port

MEGABYTE = 1024 * 1024
LCM = [sys.executable, "-c", "from lcmsite.cli import main; raise SystemExit(main())"]
OCTETS = {"Content-Type": "application/octet-stream"}
# Far less than the files that go through it.
MOST_GROWTH = 60 * MEGABYTE


@dataclass
class Site:
    """A web server of its own, as operators run it, which may be killed and started again."""

    data_dir: Path
    key: str
    port: int
    chunk_bytes: int = MEGABYTE
    process: subprocess.Popen[bytes] | None = None
    growth: int = 0
    _before: dict[int, int] = field(default_factory=dict)

    def start(self) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = start_server("web", self.port, self.environment(), **quiet)
        wait_until(self.answers, seconds=60, what="the server answers")
        self._before = self._resident()

    def kill(self) -> None:
        assert self.process is not None
        everyone = [*psutil.Process(self.process.pid).children(recursive=True), psutil.Process(self.process.pid)]
        for each in everyone:
            each.kill()
        psutil.wait_procs(everyone, timeout=20)
        self.process.wait()

    def answers(self) -> bool:
        try:
            return self.client().get("conversations/").status_code == 200
        except httpx2.TransportError:
            return False

    def client(self) -> httpx2.Client:
        return httpx2.Client(
            base_url=f"http://127.0.0.1:{self.port}/api/v1/",
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=60,
        )

    def environment(self) -> dict[str, str]:
        return {**environment(upload_chunk_bytes=self.chunk_bytes), "LCM_DATA_DIR": str(self.data_dir)}

    def weigh(self) -> None:
        """Remember how much any process of the server has grown since it answered first."""
        now = self._resident()
        self.growth = max([self.growth, *(size - self._before.get(pid, size) for pid, size in now.items())])

    def _resident(self) -> dict[int, int]:
        assert self.process is not None
        server = psutil.Process(self.process.pid)
        return {each.pid: each.memory_info().rss for each in (server, *server.children(recursive=True))}


@pytest.fixture
def site(committed_db: None, tmp_path: Path, settings: object) -> Iterator[Site]:
    settings.MEDIA_ROOT = tmp_path / "files"  # type: ignore[attr-defined]
    site = Site(data_dir=tmp_path, key=an_api_key(), port=free_port())
    try:
        yield site
    finally:
        if site.process is not None and site.process.poll() is None:
            stop([site.process])


def a_large_file(path: Path, megabytes: int) -> str:
    """A file of noise, and its SHA-256."""
    noise, digest = random.Random(megabytes), hashlib.sha256()
    with path.open("wb") as file:
        for _ in range(megabytes):
            piece = noise.randbytes(MEGABYTE)
            digest.update(piece)
            file.write(piece)
        file.write(b"the end")
    digest.update(b"the end")
    return digest.hexdigest()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "megabytes", [pytest.param(20, marks=pytest.mark.thorough), pytest.param(200, marks=pytest.mark.slow)]
)
def test_an_upload_survives_the_death_of_its_client_and_of_the_server(site, tmp_path, megabytes):
    source = tmp_path / "noise.bin"
    digest = a_large_file(source, megabytes)
    conversation = a_conversation(session_id="files")
    # So many chunks that nobody is through before it is killed.
    site.chunk_bytes = megabytes * MEGABYTE // 80
    upload_command = [*LCM, "--json", "upload", "files", str(source)]

    # A client that is killed in the middle.
    first = subprocess.Popen(upload_command, cwd=PROJECT, env=site.environment(), stdout=subprocess.DEVNULL)
    wait_until(
        lambda: UploadChunk.objects.count() >= 3 or first.poll() is not None, seconds=60, what="chunks are there"
    )
    first.kill()
    first.wait()
    arrived = UploadChunk.objects.count()
    assert 3 <= arrived < 80, "the client was killed before it was through"

    # Another client, over REST, and a server that is killed while a chunk is on its way.
    site.start()
    client = site.client()
    (upload,) = client.get(f"conversations/{conversation.conversation_id}/uploads/").json()["items"]
    assert (upload["sha256"], upload["chunks_received"]) == (digest, arrived)
    with source.open("rb") as file:
        for number, offset in enumerate(upload["missing"][:20]):
            if number == 3:
                threading.Timer(0.01, site.kill).start()
            upload = bring(site, upload, offset, file)
            site.weigh()

    # The first client again, which goes on with what is missing and makes the file.
    done = subprocess.run(upload_command, cwd=PROJECT, env=site.environment(), capture_output=True, check=True)
    file = LargeFile.objects.get()
    assert file.file_id in done.stdout.decode()
    assert (bytes(file.content_hash).hex(), file.byte_size) == (digest, source.stat().st_size)
    assert site.client().post(f"uploads/{upload['upload_id']}/finish/").json()["file_id"] == file.file_id
    # What the killed were writing is all that is left of the chunks, until the sweep.
    left = [path for path in (tmp_path / "files").rglob("*") if path.is_file() and path.name != digest]
    assert {path.parent.name for path in left} <= {"unfinished"}
    assert len(left) <= 2

    # It streams back, whole and in ranges.
    received = hashlib.sha256()
    with site.client().stream("GET", f"files/{file.file_id}/download/") as response:
        for piece in response.iter_bytes():
            received.update(piece)
            site.weigh()
    ending = site.client().get(f"files/{file.file_id}/download/", headers={"Range": f"bytes={megabytes * MEGABYTE}-"})
    assert received.hexdigest() == digest
    assert (ending.status_code, ending.content) == (206, b"the end")
    assert site.growth < MOST_GROWTH


def bring(site: Site, upload: dict, offset: int, file) -> dict:
    """Put one chunk, again if need be, to a server that may have to be started first."""
    while True:
        file.seek(offset)
        try:
            reply = site.client().put(
                f"uploads/{upload['upload_id']}/chunks/{offset}/", content=file.read(site.chunk_bytes), headers=OCTETS
            )
            assert reply.status_code == 200, reply.text
            return reply.json()
        except httpx2.TransportError:
            assert site.process is not None
            site.process.wait(timeout=30)
            site.start()


@pytest.mark.timeout(600)
@pytest.mark.thorough
def test_every_kind_of_file_in_one_conversation(site):
    conversation_id = a_conversation(session_id="files").conversation_id
    site.start()
    client = site.client()
    samples = [
        *KINDS.values(),
        *((file_name, content, [words]) for file_name, content, words in LIES.values()),
        *((file_name, make(), words) for file_name, make, words in HOSTILE.values()),
    ]

    stored = []
    for file_name, content, _ in samples:
        reply = client.post(
            f"conversations/{conversation_id}/files/",
            params={"file_name": f"../../{file_name}"}, content=content, headers=OCTETS,
        )  # fmt: skip
        assert reply.status_code == 201, (file_name, reply.text)
        stored.append(reply.json())
        site.weigh()

    for record, (file_name, content, words) in zip(stored, samples, strict=True):
        described = client.get(f"items/{record['file_id']}/").json()
        assert [each for each in words if each not in described["exploration_summary"]] == [], file_name
        assert (described["file_name"], described["byte_size"]) == (f"../../{file_name}", len(content))
        body = client.get(f"files/{record['file_id']}/download/")
        assert body.content == content
        assert "/" not in body.headers["Content-Disposition"]
    inside = {path.relative_to(site.data_dir).parts[0] for path in site.data_dir.rglob("*") if path.is_file()}
    assert inside <= {"files", "secret_key"}
    # What is looked into is at most the first megabyte, or a process apart, and what is unpacked 64 KB at a time.
    assert site.growth < 2 * MOST_GROWTH


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_what_is_refused_is_refused_clearly_and_leaves_nothing(site):
    conversation_id = a_conversation(session_id="files").conversation_id
    os.environ["LCM_MAX_FILE_BYTES"] = str(3 * MEGABYTE)
    try:
        site.start()
    finally:
        del os.environ["LCM_MAX_FILE_BYTES"]
    client = site.client()
    ours = f"conversations/{conversation_id}/"
    begun = client.post(f"{ours}uploads/", json={"byte_size": 10}).json()
    chunk = f"uploads/{begun['upload_id']}/chunks/"

    for reply, status, code in (
        (client.post(f"{ours}files/", content=bytes(4 * MEGABYTE), headers=OCTETS), 413, "file_too_large"),
        (client.post(f"{ours}uploads/", json={"byte_size": 4 * MEGABYTE}), 413, "file_too_large"),
        (client.put(f"{chunk}0/", content=bytes(70 * MEGABYTE), headers=OCTETS), 413, "request_too_large"),
        (client.put(f"{chunk}0/", content=b"short", headers=OCTETS), 400, "invalid"),
        (client.put(f"{chunk}5/", content=b"short", headers=OCTETS), 400, "invalid"),
        (client.put(f"{chunk}0/", content=b"0123456789", headers={"Content-Type": "text/plain"}), 415, None),
        (client.put(f"{chunk}..%2F0/", content=b"0123456789", headers=OCTETS), 404, None),
        (client.post(f"uploads/{begun['upload_id']}/finish/"), 409, "conflict"),
        (client.put("uploads/upload_0000000000000000/chunks/0/", content=b"x", headers=OCTETS), 404, "not_found"),
        (client.get("files/..%2F..%2Fsecret_key/download/"), 404, None),
        (client.get("files/file_0000000000000000/download/"), 404, "not_found"),
    ):
        assert reply.status_code == status, reply.text
        assert code is None or reply.json()["code"] == code
        assert reply.json()["detail"]

    assert not LargeFile.objects.exists()
    assert not [path for path in (site.data_dir / "files").rglob("*") if path.is_file()]
