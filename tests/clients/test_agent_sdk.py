"""The Claude Agent SDK's sessions in LCM: by its own contracts, and as what LCM makes of them."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conversations.models import AuditEntry, Conversation, Message
from tests.flows.processes import PROJECT

VERSION = "0.2.187"
# More than the contracts that ask for a store each.
STORES = 30

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

MAIN = {"project_key": "-home-ada-boats", "session_id": "8f7d"}
SUBAGENT = {**MAIN, "subpath": "subagents/agent-a28"}


def line(number, role, content, **own):
    at = f"2026-03-01T10:{number:02}:00.000Z"
    message = {"role": role, "content": content, **({"id": f"msg_{number}"} if role == "assistant" else {})}
    return {"type": role, "uuid": f"u{number}", "timestamp": at, "message": message, **own}


TALK = [
    line(1, "user", "Which port has the harbour's database?", cwd="/home/ada/boats"),
    {"type": "file-history-snapshot", "snapshot": {"n": 1.50, "deep": {"a": "\x00\ud800"}}},
    line(2, "assistant", [{"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "ports.md"}}]),
    line(3, "user", [{"type": "tool_result", "tool_use_id": "c1", "content": "PORT = 5433"}], toolUseResult={"x": 1}),
    line(4, "assistant", [{"type": "text", "text": "It is 5433."}]),
    {"type": "custom-title", "customTitle": "Ports"},
]


@pytest.fixture(scope="session")
def sdk_directory():
    """Where the SDK is: installed already, or in a directory that is kept, without the program that it brings."""
    if importlib.util.find_spec("claude_agent_sdk"):
        return None
    target = Path(tempfile.gettempdir(), f"lcm-tests-claude-agent-sdk-{VERSION}")
    if not (target / "claude_agent_sdk").is_dir():
        install = ["install", "-q", "--no-deps", "--no-binary", "claude-agent-sdk", "--retries", "1"]
        command = [sys.executable, "-m", "pip", *install, "--target", target, f"claude-agent-sdk=={VERSION}"]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        except (subprocess.SubprocessError, OSError) as failed:
            pytest.skip(f"claude-agent-sdk cannot be installed here: {failed}")
    return target


@pytest.fixture
def lcm_session_store(sdk_directory, monkeypatch):
    if sdk_directory:
        monkeypatch.syspath_prepend(sdk_directory)
    monkeypatch.syspath_prepend(PROJECT / "clients" / "claude-agent-sdk")
    return importlib.import_module("lcm_session_store")


@pytest.fixture
def a_store(lcm_session_store, served_lcm):
    return lambda: lcm_session_store.LcmSessionStore(served_lcm.url, served_lcm.a_key())


def test_the_store_keeps_every_contract_of_the_sdk(a_store):
    from claude_agent_sdk.testing import run_session_store_conformance

    stores = iter([a_store() for _ in range(STORES)])

    asyncio.run(run_session_store_conformance(lambda: next(stores)))


def test_entries_come_back_deep_equal_and_their_messages_are_a_conversation(a_store):
    store = a_store()

    async def kept():
        await store.append(MAIN, TALK[:3])
        await store.append(SUBAGENT, [line(9, "user", "Look for the port in docs.", isSidechain=True)])
        await store.append(MAIN, TALK[2:])
        return await store.load(MAIN), await store.list_session_summaries(MAIN["project_key"])

    loaded, [summary] = asyncio.run(kept())

    assert loaded == TALK
    assert summary["data"]["custom_title"] == "Ports" and summary["data"]["cwd"] == "/home/ada/boats"
    main = Conversation.objects.get(session_id="claude-agent-sdk:-home-ada-boats:8f7d")
    texts = main.messages.order_by("seq").values_list("content", flat=True)
    assert [part in text for part, text in zip(("Which port", "Read", "PORT", "It is 5433"), texts, strict=True)]
    child = Conversation.objects.get(session_id="claude-agent-sdk:-home-ada-boats:8f7d:subagents/agent-a28")
    assert (child.parent_id, child.project.name, child.messages.count()) == (main.pk, "-home-ada-boats", 1)
    # Three appends, and two of them changed what the SDK shows of the session.
    assert AuditEntry.objects.filter(conversation_id=main.pk, act="change_conversation").count() == 2


def test_a_prompt_of_any_characters_is_the_first_of_its_session(a_store):
    store = a_store()
    talk = [line(1, "user", "Which \x00 port\ud800?"), line(2, "user", "And now?")]

    async def kept():
        for entry in talk:
            await store.append(MAIN, [entry])
        return await store.load(MAIN), await store.list_session_summaries(MAIN["project_key"])

    loaded, [summary] = asyncio.run(kept())

    assert loaded == talk
    assert summary["data"]["first_prompt"] == "Which \ufffd port\ufffd?"


def test_what_is_deleted_leaves_the_store_and_stays_in_lcm(a_store):
    store = a_store()

    async def again():
        await store.append(MAIN, TALK)
        await store.delete(MAIN)
        await store.append(MAIN, TALK[:1])
        return await store.load(MAIN), await store.list_sessions(MAIN["project_key"])

    loaded, sessions = asyncio.run(again())

    assert loaded == TALK[:1] and len(sessions) == 1
    assert Message.objects.filter(content__contains="PORT = 5433").exists()


def test_a_message_that_lcm_refuses_is_in_the_journal_whole(a_store, caplog):
    huge = line(5, "assistant", [{"type": "text", "text": "It is 5433."}], usage={})
    huge["message"]["usage"] = {"notes": "x" * 100_000}

    store = a_store()

    async def appended():
        await store.append(MAIN, [*TALK, huge])
        return await store.load(MAIN)

    assert asyncio.run(appended()) == [*TALK, huge]
    assert Message.objects.count() == 4 and "metadata_too_large" in caplog.text


def test_an_lcm_that_is_down_is_an_error_that_the_sdk_repeats(lcm_session_store):
    store = lcm_session_store.LcmSessionStore("http://127.0.0.1:9", "lcm_x", timeout=1)

    with pytest.raises(OSError, match="refused"):
        asyncio.run(store.append(MAIN, TALK))
