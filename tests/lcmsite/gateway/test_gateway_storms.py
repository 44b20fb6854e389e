"""Many streams at once, and a gateway that is killed in the middle of them."""

import json
import signal
import socket
import threading
import time
from statistics import median

import httpx2
import psutil
import pytest

from lcmsite.gateway.surfaces import Surface
from tests.lcmsite.gateway.sessions import PATHS, body_of, mine, rendered, user, words
from tests.lcmsite.gateway.test_gateway import EVENTS, recorded
from tests.lcmsite.gateway.upstream import answering, streaming
from tests.lcmsite.operating import eventually

pytestmark = pytest.mark.thorough
PATH = PATHS[Surface.CHAT]
STREAMS = 50
# More than the kernel's buffers on the way hold.
PIECES = 1600


@pytest.fixture(scope="module")
def gateway_settings():
    return {}


def test_fifty_streams_at_once_pass_whole_and_memory_stays_flat(gateway):
    gateway.upstream.reply = streaming(*EVENTS[Surface.CHAT], *[b": wait\n\n"] * 40, between=lambda _: time.sleep(0.02))
    process = psutil.Process(gateway.process.pid)
    failed: list[object] = []

    def one(number):
        rows = [user(f"{number} " + "word " * 20_000)]
        answer = gateway.ask(PATH, body_of(Surface.CHAT, rows), x_claude_code_session_id=f"session-{number:04d}")
        if not answer.content.startswith(b"".join(EVENTS[Surface.CHAT])):
            failed.append(answer)

    sizes = []
    for _ in range(4):
        threads = [threading.Thread(target=one, args=(number,)) for number in range(STREAMS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        sizes.append(process.memory_info().rss / 1024**2)

    assert [(each.status_code, each.text) for each in failed] == []
    assert sizes[-1] - sizes[1] < 40
    eventually(lambda: not list(gateway.spool.glob("*.exchange")), seconds=120)


@pytest.mark.parametrize("mode", ["record", "off"])
def test_a_client_that_reads_slowly_does_not_make_the_gateway_hold_its_answer(gateway, mode):
    piece = b": " + b"x" * (64 * 1024 - 4) + b"\n\n"
    sent: list[int] = []
    gateway.upstream.reply = streaming(*EVENTS[Surface.CHAT])
    # What the gateway loads with its first request is no answer that it holds.
    gateway.ask(PATH, body_of(Surface.CHAT, [user("Hi")]))
    recorded(gateway, 2)
    gateway.upstream.reply = streaming(*EVENTS[Surface.CHAT], *[piece] * PIECES, between=sent.append)
    process = psutil.Process(gateway.process.pid)
    before = median(_sizes(process))
    body = json.dumps(body_of(Surface.CHAT, [user("Hello")])).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: a\r\nx-lcm-api-key: {gateway.key}\r\nx-lcm-mode: {mode}\r\n"

    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(30)
        client.connect(("127.0.0.1", gateway.port))
        client.sendall(f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        client.recv(1)
        # Until the buffers on the way are full: then the vendor waits, too.
        eventually(lambda: sent and sent[-1] == (time.sleep(1) or sent[-1]), seconds=60)
        held, waiting = median(_sizes(process)) - before, sent[-1]
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)
        taken = 1 + sum(map(len, iter(lambda: client.recv(2**20), b"")))

    assert held < 8 * 1024**2
    assert waiting < 320
    assert taken > PIECES * len(piece)


def _sizes(process):
    """What a process has in memory, at three moments."""
    for _ in range(3):
        yield process.memory_info().rss
        time.sleep(0.2)


def test_a_killed_gateway_loses_nothing_that_its_agents_sent_again(gateway):
    held = threading.Event()
    gateway.upstream.reply = streaming(*EVENTS[Surface.CHAT], between=lambda number: number == 3 and held.wait(20))
    body = body_of(Surface.CHAT, [user("One")], stream=True)
    # What the database did not take is there after the kill, too.
    gateway.relay.cut()
    later, gateway.upstream.reply = gateway.upstream.reply, answering(rendered(Surface.CHAT, "Spooled.").whole())
    gateway.ask(PATH, body_of(Surface.CHAT, [user("Zero")]), x_claude_code_session_id="of-the-spool")
    eventually(lambda: list(gateway.spool.glob("*.exchange")), seconds=30)

    gateway.upstream.reply = later
    with (
        pytest.raises(httpx2.HTTPError),
        gateway.stream(PATH, json.dumps(body).encode(), x_session_id="of-a-kill") as answer,
    ):
        for _ in answer.iter_raw():
            gateway.process.send_signal(signal.SIGKILL)
    gateway.process.wait()
    held.set()
    gateway.relay.mend()
    gateway.serve()
    gateway.upstream.reply = streaming(*EVENTS[Surface.CHAT])
    gateway.ask(PATH, body, x_claude_code_session_id="", x_session_id="of-a-kill")

    eventually(lambda: not list(gateway.spool.glob("*.exchange")), seconds=60)
    recorded(gateway, 2)
    conversations = type(mine(gateway)).objects.filter(workspace=mine(gateway).workspace)
    said = [["One", "Good morning to you."], ["Zero", "Spooled."]]
    # What was asked again is recorded behind its answer.
    eventually(lambda: sorted(words(each) for each in conversations.all()) == said, seconds=60)
