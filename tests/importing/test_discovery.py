"""`lcm import --discover` and `lcm watch`: all sessions on a machine, each once, children with their parents."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.models import Conversation, Message
from lcmsite.importing import sweeping
from lcmsite.importing.discovery import find_files, places_of
from lcmsite.importing.sweeping import Memory, Sweep, Sweeper
from tests.factories import a_conversation, a_store, a_workspace
from tests.importing import host_files as files
from tests.importing.host_files import put
from tests.lcmsite.callers import lcm

pytestmark = pytest.mark.django_db


@pytest.fixture
def home(codex_home):
    """A home with sessions of every agent, and a directory where aider was at work."""
    claude = ".claude/projects/-home-ada-boats"
    put(codex_home, f"{claude}/cc-1/subagents/agent-a1.jsonl", files.lines_of(files.CLAUDE_CODE_AGENT))
    put(codex_home, f"{claude}/cc-1.jsonl", files.lines_of(files.CLAUDE_CODE))
    put(codex_home, ".pi/agent/sessions/--home-ada-boats--/pi-1.jsonl", files.lines_of(files.PI))
    put(codex_home, ".gemini/tmp/ab12/chats/session-2.jsonl", files.lines_of(files.GEMINI_LINES))
    put(codex_home, "boats/.aider.chat.history.md", files.AIDER.encode())
    (codex_home / ".local/share/opencode").mkdir(parents=True)
    files.opencode_database(codex_home / ".local/share/opencode/opencode.db", files.OPENCODE).close()
    return codex_home


def of_codex(session, parent):
    """A rollout of a subagent of Codex."""
    payload = {"id": session, "parent_thread_id": parent, "source": {"subagent": "review"}}
    meta = {"timestamp": files.ISO, "type": "session_meta", "payload": payload}
    return files.lines_of([meta, *files.CODEX[1:]])


def discovered(home: Path, *more: str, exit_code: int = 0):
    found = lcm("--json", "import", "--discover", "--directory", str(home / "boats"), *more)
    assert found.exit_code == exit_code, found.err
    return found.json


def test_what_is_found_is_shown_and_not_imported_unasked(home):
    found = discovered(home)["found"]

    counts = {each["agent"]: each["files"] for each in found}
    assert counts == {"Claude Code": 2, "Codex": 1, "Gemini CLI": 1, "OpenCode": 1, "aider": 1, "pi": 1}
    assert all(each["oldest"] <= each["newest"] for each in found)
    assert not Conversation.objects.exists()
    assert "--yes" in lcm("import", "--discover", "--directory", str(home / "boats")).err


def test_all_sessions_are_imported_once_and_what_has_grown_again(home):
    first = discovered(home, "--yes")

    sessions = set(Conversation.objects.values_list("session_id", flat=True))
    assert sessions == {"cc-1", "cc-1:a1", "codex-1", "pi-1", "gem-2", "ses_1", f"aider:{home / 'boats'}"}
    assert (first["files"], first["conversations"], first.get("refused", [])) == (7, 7, [])
    assert first["created"] == Message.objects.count()
    agent = Conversation.objects.get(session_id="cc-1:a1")
    assert (agent.parent.session_id, agent.parent_link) == ("cc-1", "subagent")

    grown = home / ".codex/sessions/2026/01/31/rollout-1.jsonl"
    grown.write_bytes(files.lines_of([*files.CODEX, files.CODEX[1]]))
    again = discovered(home, "--yes")

    assert (again["files"], again["unchanged"], again["created"]) == (1, 6, 1)
    assert again["stored_before"] == 2


def test_sessions_of_subagents_of_codex_are_children_although_they_ended_first(codex_home):
    review = {"parent_thread_id": "codex-1", "source": {"subagent": "review"}}
    spawned = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "codex-1", "depth": 1}}}}
    for number, payload in ((2, review), (3, spawned)):
        meta = {"timestamp": files.ISO, "type": "session_meta", "payload": {"id": f"codex-{number}"} | payload}
        # Of the parent's history, which the sub-agent was given, the first line is the parent's.
        lines = files.lines_of([meta, *files.CODEX])
        os.utime(put(codex_home, f".codex/sessions/2026/01/31/rollout-{number}.jsonl", lines), (1, 1))

    discovered(codex_home, "--yes")

    agents = Conversation.objects.exclude(session_id="codex-1").order_by("session_id")
    assert [(each.session_id, each.parent.session_id, each.parent_link) for each in agents] == [
        ("codex-2", "codex-1", "subagent"),
        ("codex-3", "codex-1", "subagent"),
    ]


def test_a_session_that_is_imported_before_its_parent_becomes_its_child(imported):
    imported("rollout-2.jsonl", of_codex("codex-2", "codex-1"))
    before = Conversation.objects.get().parent
    waits = {"lcm_parent_session": "codex-1"}
    foreign = a_conversation(session_id="codex-9", metadata=waits, workspace=a_workspace("elsewhere"))
    imported("rollout-1.jsonl", files.lines_of(files.CODEX))

    child = Conversation.objects.get(session_id="codex-2")
    assert (before, child.parent.session_id, child.parent_link) == (None, "codex-1", "subagent")
    assert Conversation.objects.get(session_id="codex-9").pk == foreign.conversation_id


@pytest.mark.parametrize("parents", [{"a": "b", "b": "a"}, {"a": "a"}])
def test_sessions_that_name_each_other_as_parents_are_imported(imported, parents):
    for _ in range(2):
        for session, parent in parents.items():
            imported(f"rollout-{session}.jsonl", of_codex(session, parent))

    assert Conversation.objects.count() == len(parents)
    assert Conversation.objects.exclude(parent=None).count() == len(parents) - 1


def test_the_metadata_of_a_client_make_no_conversation_a_child(imported):
    a_conversation(session_id="mine", metadata={"parent_session_id": "codex-1"})

    imported("rollout-1.jsonl", files.lines_of(files.CODEX))

    mine, imported_one = Conversation.objects.order_by("conversation_id")
    assert (mine.parent, mine.workspace) == (None, imported_one.workspace)


def test_sessions_that_wait_for_their_parents_are_read_once_for_a_file(imported):
    imported("rollout-2.jsonl", of_codex("codex-2", "s3"))
    chats = [{"session_id": f"s{n}", "messages": [{"role": "user", "content": "hello"}]} for n in range(5)]

    with CaptureQueriesContext(connection) as queries:
        imported("chats.jsonl", files.lines_of(chats))

    assert sum("lcm_parent_session" in each["sql"] for each in queries) == 1
    assert Conversation.objects.get(session_id="codex-2").parent.session_id == "s3"


def test_a_file_that_is_refused_is_named_and_stops_no_other(codex_home):
    put(codex_home, ".codex/sessions/2026/01/31/rollout-0.jsonl", b"hello\n")

    [refused] = discovered(codex_home, "--yes", exit_code=1)["refused"]
    shown = lcm("import", "--discover", "--directory", str(codex_home / "boats"), "--yes")

    assert (shown.exit_code, "1 of 2 files refused" in shown.err) == (1, True), shown.out + shown.err
    assert refused["file"].endswith("rollout-0.jsonl") and refused["code"] == "malformed_history"
    assert Conversation.objects.get().session_id == "codex-1"


def test_a_file_with_an_unfinished_end_or_a_refusal_is_not_read_again_unchanged(codex_home, monkeypatch):
    put(codex_home, ".codex/sessions/2026/01/31/rollout-0.jsonl", b"hello\n")
    put(codex_home, ".codex/sessions/2026/01/31/rollout-2.jsonl", of_codex("codex-2", "codex-1")[:-9])
    found, sweeper = find_files(places_of(codex_home, {})), Sweeper(a_store(), Memory(codex_home / "memory"))

    first = sweeper.sweep(found)
    monkeypatch.setattr(sweeping, "Importer", None)
    again = sweeper.sweep(found)

    assert (first.files, again.files, again.unchanged) == (2, 0, 2)
    assert again.refused == first.refused and len(again.refused) == 1


def test_a_sweep_names_the_broken_lines_of_each_file(codex_home):
    put(codex_home, ".codex/sessions/2026/01/31/rollout-2.jsonl", of_codex("codex-2", "codex-1") + b"{\n")
    sweeper = Sweeper(a_store(), Memory(codex_home / "memory"))

    found = sweeper.sweep(find_files(places_of(codex_home, {})))
    [[name, lines]] = Sweep().after(found).broken_lines.items()

    assert (found.files, found.refused, name.endswith("rollout-2.jsonl")) == (2, [], True)
    assert lines == [of_codex("codex-2", "codex-1").count(b"\n") + 1]


def test_what_was_imported_is_read_again_where_its_conversation_is_gone(codex_home):
    discovered(codex_home, "--yes")
    memory = [path.read_bytes() for path in (codex_home / "var").iterdir()]
    assert len(memory) == 1 and b"codex-1" in memory[0]
    Conversation.objects.filter(session_id="codex-1").update(session_id="renamed")

    again = discovered(codex_home, "--yes")

    assert (again["files"], again["unchanged"], again["created"]) == (1, 0, 2)


def test_an_import_needs_a_file_or_discovers_but_not_both(home):
    for given in ([], ["x.jsonl", "--discover"], ["--discover", "--session", "x"]):
        assert lcm("--json", "import", *given).exit_code == 2
