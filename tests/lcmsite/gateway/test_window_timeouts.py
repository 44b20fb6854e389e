"""An assembly that hangs is given up, and holds up nothing else."""

import asyncio
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from django.db import OperationalError
from structlog.testing import capture_logs

from compaction.engine import CompactionEngine
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from lcmsite.access.keys import hash_of_key
from lcmsite.gateway.recording import recorder
from lcmsite.gateway.recording.backlog import build_recorder
from lcmsite.gateway.surfaces import Surface, Task
from lcmsite.gateway.window import stored_memory, windows
from tests.committed import another_connection
from tests.factories import a_workspace
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.gateway.sessions import an_exchange, user


def test_assemblies_that_hang_leave_the_threads_of_others_alone(monkeypatch):
    held, begun = threading.Event(), threading.Semaphore(0)

    def hang(key_hash):
        begun.release()
        held.wait(20)
        raise OSError

    monkeypatch.setattr(windows, "caller_of_hash", hang)
    exchange = an_exchange(Surface.CHAT, {})
    recorded = SimpleNamespace(side="", conversation_id=1, seqs={})

    async def story():
        hanging = [
            asyncio.create_task(windows.assemble_recorded(exchange, recorded, is_trial=False, with_lookups=False))
            for _ in range(40)
        ]
        await asyncio.sleep(0.2)
        assert begun.acquire(timeout=5)
        try:
            return await asyncio.wait_for(asyncio.to_thread(lambda: "kept"), 5)
        finally:
            held.set()
            assert await asyncio.gather(*hanging) == [None] * 40

    assert asyncio.run(story()) == "kept"


def test_a_database_that_takes_too_long_ends_the_count_of_a_request(committed_db, monkeypatch):
    monkeypatch.setattr(recorder, "STATEMENT_TIMEOUT", "100ms")
    key_hash = hash_of_key(an_api_key(a_workspace()))
    body = {"messages": [user("hello")]}
    exchange = an_exchange(Surface.CHAT, body, key_hash=key_hash, headers={"x-lcm-session-id": "one"})
    build_recorder(exchange).record_request(exchange)
    exchange = replace(exchange, task=Task.COUNT)

    def counted():
        return asyncio.run(asyncio.wait_for(windows.assemble_count_request(exchange, with_lookups=False), 30))

    with another_connection() as other, capture_logs() as logged:
        other.execute("LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE")
        assert counted() is None
        other.rollback()

    [given_up] = [each for each in logged if each["event"] == "gateway_not_assembled"]
    assert isinstance(given_up["exc_info"], OperationalError)
    monkeypatch.undo()
    assert counted() is not None


def test_a_database_that_takes_too_long_ends_an_assembly(committed_db, monkeypatch):
    monkeypatch.setattr(recorder, "STATEMENT_TIMEOUT", "100ms")
    scope = Scope(a_workspace().pk)
    opened = ConversationStore.from_settings(scope).open_conversation(session_id="one")
    memory = stored_memory.StoredMemory(
        scope.conversation(opened.conversation_id), CompactionEngine.from_settings(scope)
    )

    with another_connection() as other:
        other.execute("LOCK TABLE context_items IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(OperationalError):
            memory.active_summaries()
        other.rollback()

    assert memory.active_summaries() == []
