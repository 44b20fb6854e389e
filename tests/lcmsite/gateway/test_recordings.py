"""What the database takes too long over holds up its own session, and no other."""

import asyncio
import gc
import time
import weakref
from contextlib import contextmanager

import httpx2
import pytest

from conversations.errors import Forbidden
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from lcmsite.access.keys import hash_of_key
from lcmsite.gateway.gateway_app import Gateway
from lcmsite.gateway.recording import backlog, exchange_spool, recorder, recordings
from lcmsite.gateway.recording.exchange import Exchange, Outcome, serialize_exchange
from lcmsite.gateway.recording.exchange_spool import SpoolInUse
from lcmsite.gateway.recording.recordings import Recordings
from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.upstreams import Routes, parse_rules, parse_upstreams
from tests.clients.answers import Answer
from tests.committed import another_connection
from tests.conversations.appending import at_once
from tests.factories import a_workspace
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.gateway.sessions import PATHS, an_exchange, body_of, conversation, read_answer, rendered, user, words
from tests.lcmsite.gateway.upstream import Upstream, answering

pytestmark = pytest.mark.usefixtures("committed_db")
SLOW, OTHER = "slow-session", "other-session"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """What takes long takes less, but no healthy statement of a slow machine takes as long."""
    monkeypatch.setattr(recorder, "STATEMENT_TIMEOUT", "1s")
    monkeypatch.setattr(backlog, "BACKOFF_SECONDS", (0.05, 0.1))
    monkeypatch.setattr(backlog, "MOST_ATTEMPTS", 2)


class Agents:
    """Sessions of one key through the recordings of a process."""

    def __init__(self, directory):
        workspace = a_workspace()
        self.key_hash = hash_of_key(an_api_key(workspace))
        self.store = ConversationStore.from_settings(Scope(workspace.pk))
        self.recordings = Recordings.in_directory(directory, most_bytes=1024**2)
        self.spool = self.recordings.backlog.spool.directory

    def exchange(self, session, *texts):
        """A request with what the user and the model have said in turn."""
        rows = [
            user(text) if place % 2 == 0 else {"role": "assistant", "content": text} for place, text in enumerate(texts)
        ]
        body = body_of(Surface.CHAT, rows)
        return an_exchange(Surface.CHAT, body, key_hash=self.key_hash, headers={"x-session-id": session})

    async def ask(self, session, text, **more):
        """Whether the request was recorded while it was under way."""
        pending = self.recordings.begin(self.exchange(session, text), **more)
        found = await pending.task
        await self.recordings.end(pending, lambda: Outcome(200, 5, answer=read_answer(Surface.CHAT, Answer("Hi."))))
        return found is not None

    def run(self, story):
        async def all_of_it():
            await self.recordings.start()
            try:
                await story()
            finally:
                await self.recordings.stop()

        asyncio.run(all_of_it())

    @contextmanager
    def locked(self, session):
        """While somebody else has the conversation of a session."""
        opened = self.store.open_conversation(session_id=f"gateway/{session}")
        with another_connection() as other:
            query = "SELECT 1 FROM conversations WHERE conversation_id = %s FOR UPDATE"
            other.execute(query, [opened.conversation_id])
            yield other


async def until(is_true, seconds=30.0):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def test_an_exchange_that_takes_too_long_holds_up_its_session_alone(tmp_path, monkeypatch):
    agents = Agents(tmp_path)
    monkeypatch.setattr(recorder, "STATEMENT_TIMEOUT", "2s")

    async def story():
        assert not await agents.ask(SLOW, "One")
        began = time.monotonic()
        assert not await agents.ask(SLOW, "Two")
        assert time.monotonic() - began < 1.5
        assert await agents.ask(OTHER, "Hello", is_awaited=True)
        assert not agents.recordings.is_down
        assert len(list(agents.spool.glob("*.exchange"))) == 2
        other.rollback()
        await until(lambda: not agents.recordings.backlog.waiting)
        assert await agents.ask(SLOW, "Three")

    with agents.locked(SLOW) as other:
        agents.run(story)

    assert words(conversation(f"gateway/{OTHER}")) == ["Hello", "Hi."]
    assert {"One", "Two", "Three"} < set(words(conversation(f"gateway/{SLOW}"), active=False))


def test_requests_at_once_that_go_on_from_one_answer_are_branches(tmp_path):
    agents = Agents(tmp_path)
    recorder = backlog.build_recorder(agents.exchange(SLOW))
    recorder.record_request(agents.exchange(SLOW, "One", "First."))

    at_once(lambda n: recorder.record_request(agents.exchange(SLOW, "One", "First.", f"Two {n}")), workers=4)

    assert len(words(conversation(f"gateway/{SLOW}"))) == 3


def test_a_key_that_may_only_read_records_nothing():
    key_hash = hash_of_key(an_api_key(None, "read"))
    exchange = an_exchange(Surface.CHAT, body_of(Surface.CHAT, [user("One")]), key_hash=key_hash)

    with pytest.raises(Forbidden):
        backlog.build_recorder(exchange)


def test_an_exchange_that_the_database_never_takes_is_put_aside(tmp_path):
    agents = Agents(tmp_path)

    async def story():
        await agents.ask(SLOW, "One")
        # Longer than the attempts that would be too many, had the database taken anything between them.
        await asyncio.sleep(3)
        assert not list(agents.spool.glob("rejected/*"))
        end = time.monotonic() + 60
        while not list(agents.spool.glob("rejected/*")):
            assert time.monotonic() < end
            assert await agents.ask(OTHER, str(time.monotonic()))
            await asyncio.sleep(0.1)
        await until(lambda: not agents.recordings.backlog.waiting)

    with agents.locked(SLOW):
        agents.run(story)

    assert not list(agents.spool.glob("*.exchange"))
    assert words(conversation(f"gateway/{SLOW}")) == []


def test_what_is_unfinished_or_in_memory_is_spooled_when_the_gateway_stops(tmp_path, monkeypatch):
    agents = Agents(tmp_path)
    monkeypatch.setattr(recorder, "STATEMENT_TIMEOUT", "3s")
    monkeypatch.setattr(recordings, "SECONDS_TO_FINISH", 0.2)

    async def story():
        agents.spool.parent.mkdir(exist_ok=True)
        agents.spool.touch()
        agents.recordings.replaying.cancel()
        agents.recordings.is_down = True
        await agents.ask(OTHER, "In memory")
        agents.spool.unlink()
        agents.recordings.is_down = False
        pending = agents.recordings.begin(agents.exchange(SLOW, "Unfinished"))
        agents.recordings.end(pending, lambda: Outcome(200, 5))

    with agents.locked(SLOW):
        agents.run(story)

    agents.recordings.backlog.threads.shutdown(wait=True)
    kept = " ".join(path.read_text() for path in agents.spool.glob("*.exchange"))
    assert "In memory" in kept and "Unfinished" in kept


def test_a_request_that_is_given_up_holds_up_nothing(tmp_path):
    agents = Agents(tmp_path)

    async def story():
        early, late = (agents.recordings.begin(agents.exchange(SLOW, text)) for text in ("One", "Two"))
        agents.recordings.abandon(early)
        await late.task
        agents.recordings.abandon(late)

    with agents.locked(SLOW):
        agents.run(story)

    assert not agents.recordings.backlog.waiting


def test_the_time_limit_of_a_request_starts_when_its_turn_comes(tmp_path, monkeypatch):
    agents = Agents(tmp_path)
    monkeypatch.setattr(recordings, "DATABASE_TIMEOUT_SECONDS", 2.0)
    lock = agents.recordings.lanes[agents.exchange(OTHER, "").lane] = asyncio.Lock()

    async def story():
        async with lock:
            asked = asyncio.create_task(agents.ask(OTHER, "Hello"))
            await asyncio.sleep(2.2)
        assert await asked

    agents.run(story)

    assert words(conversation(f"gateway/{OTHER}")) == ["Hello", "Hi."]


def test_requests_without_a_session_that_wait_for_slow_vendors_do_not_wait_for_each_other(tmp_path, monkeypatch):
    agents = Agents(tmp_path)
    monkeypatch.setattr(recordings, "HEAD_START_SECONDS", 3.0)

    async def story():
        begun = [agents.recordings.begin(agents.exchange(OTHER, str(number))) for number in range(8)]
        async with asyncio.timeout(20):
            assert all([await each.task for each in begun])

    agents.run(story)


def test_an_answer_is_recorded_before_the_request_that_follows_it(tmp_path):
    agents = Agents(tmp_path)
    whole = Answer("This answer comes whole at the second attempt. " * 4)

    def slowly():
        time.sleep(0.5)
        return Outcome(200, 5, answer=read_answer(Surface.CHAT, whole))

    async def story():
        first = agents.recordings.begin(agents.exchange(OTHER, "Tell me"))
        broken = Outcome(200, 5, answer=read_answer(Surface.CHAT, whole, cut=True))
        await agents.recordings.end(first, lambda: broken)
        again = agents.recordings.begin(agents.exchange(OTHER, "Tell me"))
        await again.task
        ended = agents.recordings.end(again, slowly)
        # As the agent has the end of the answer before it is read here.
        await asyncio.sleep(0.1)
        following = agents.recordings.begin(agents.exchange(OTHER, "Tell me", whole.text, "Go on"))
        await asyncio.gather(ended, following.task)

    agents.run(story)

    assert words(conversation(f"gateway/{OTHER}")) == ["Tell me", whole.text.strip(), "Go on"]


def test_two_gateways_never_use_one_spool(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange_spool, "SECONDS_TO_CLAIM", 0.2)
    agents = Agents(tmp_path)

    async def story():
        with pytest.raises(SpoolInUse, match="LCM_DATA_DIR"):
            await Recordings.in_directory(tmp_path, most_bytes=1024**2).start()

    agents.run(story)
    Agents(tmp_path).run(lambda: asyncio.sleep(0))


def test_a_file_of_the_spool_that_cannot_be_read_holds_up_its_session_alone(tmp_path):
    agents = Agents(tmp_path)
    lane = agents.exchange(SLOW, "One").lane
    unreadable = agents.spool / f"00000000000000000001-{lane}-ffff.exchange"
    unreadable.mkdir(parents=True)

    for exchange in (agents.exchange(SLOW, "Two"), agents.exchange(OTHER, "Hello")):
        data = serialize_exchange(exchange, Outcome(200, 5))
        agents.recordings.backlog.spool.add(data, lane=exchange.lane, received_at=exchange.received_at)

    async def story():
        await until(lambda: agents.recordings.backlog.recorded_count == 1)
        assert [backlog.lane_in(path) for path in agents.spool.glob("*.exchange")] == [lane, lane]

    agents.run(story)

    assert words(conversation(f"gateway/{OTHER}")) == ["Hello"] and unreadable.exists()


def test_a_key_is_looked_up_while_exchanges_wait(tmp_path, settings):
    settings.DATA_DIR = tmp_path
    sent = []
    scope = {
        "type": "http", "method": "POST", "raw_path": b"/v1/messages", "query_string": b"",
        "headers": [(b"x-lcm-api-key", b"lcm_" + b"unknown" * 6)],
    }  # fmt: skip

    async def story():
        gateway = Gateway.from_settings()
        gateway.recordings.is_down = True
        await gateway(scope, None, lambda event: asyncio.sleep(0, sent.append(event)))

    asyncio.run(story())

    assert sent[0]["status"] == 401


def test_requests_are_freed_when_they_end_and_not_when_garbage_is_collected(tmp_path, monkeypatch):
    agents = Agents(tmp_path)
    headers = {"x-lcm-api-key": an_api_key(a_workspace("freed"))}
    body = body_of(Surface.CHAT, [user("Hello")])
    begun: list[weakref.ref[Exchange]] = []
    begin = agents.recordings.begin

    def noted(exchange, **more):
        begun.append(weakref.ref(exchange))
        return begin(exchange, **more)

    monkeypatch.setattr(agents.recordings, "begin", noted)

    async def story(vendor):
        gateway = Gateway(Routes(parse_upstreams(f"test={vendor.url}"), parse_rules("record")), agents.recordings)
        transport = httpx2.ASGITransport(gateway)
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway", headers=headers) as client:
            for mode in ("record", "record", "assemble", "assemble"):
                answer = await client.post(PATHS[Surface.CHAT], json=body, headers={"x-lcm-mode": mode})
                assert answer.status_code == 200
        await until(lambda: agents.recordings.backlog.recorded_count == 4 and not agents.recordings.tasks)
        assert [each() for each in begun] == [None] * 4

    with Upstream() as vendor:
        vendor.reply = answering(rendered(Surface.CHAT, "Hi.").whole())
        gc.collect()
        gc.disable()
        try:
            agents.run(lambda: story(vendor))
        finally:
            gc.enable()
