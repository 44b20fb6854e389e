"""Hooks of hosts: fast, never an error, nothing lost while LCM is down, recall where the host has cut."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from compaction.history.models import HistoryJob
from compaction.hosts.host_service import HostCompaction
from compaction.models import CompactionBoundary
from conversations.models import Conversation, Message
from conversations.types import ParentLink
from lcmsite.access import keys
from lcmsite.cli.cli_session import OPERATOR
from lcmsite.hosts import agent_host, hook, host_state, spool
from lcmsite.hosts import replay as replaying
from lcmsite.hosts.agent_host import Host, host_named
from lcmsite.hosts.programs import claude_code_host
from lcmsite.hosts.replay import MOST_ATTEMPTS, replay
from lcmsite.hosts.rest_client import RestClient, Unreachable
from lcmsite.importing.importer import Importer
from lcmsite.models import ApiKey
from tests.committed import committed_db
from tests.compacting import another_session_compacts
from tests.factories import a_conversation, a_workspace
from tests.importing import host_files as files
from tests.lcmsite.callers import an_api_key, lcm
from tests.served import served as site_served

__all__ = ["committed_db"]

HOOK = "import sys; from lcmsite.cli import main; main(['hook', *sys.argv[1:]])"
MODULES = "; print([name for name in sys.modules if name.startswith('django')], file=sys.stderr)"
# Nothing listens there.
DOWN = "http://127.0.0.1:9"


def hooked(host: str, event: Any, *, also: str = "") -> subprocess.CompletedProcess[bytes]:
    """What `lcm hook` answers in a process of its own."""
    given = event if isinstance(event, bytes) else json.dumps(event).encode()
    code = [sys.executable, "-c", HOOK + also, host]
    return subprocess.run(code, input=given, capture_output=True, timeout=60, cwd=Path(__file__).parents[2])


def connect_to(host: str, url: str = DOWN, key: str = "lcm_none") -> None:
    host_state.write(host, "connection.json", {"api_url": url, "api_key": key})


def transcript(home: Path, name: str, lines: list[dict[str, Any]]) -> str:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(files.lines_of(lines))
    return str(path)


@pytest.fixture
def used(home: Path, db: None) -> Path:
    """A home of somebody with a workspace."""
    a_workspace()
    return home


def leave(host: str, *entries: dict[str, Any]) -> None:
    """Put work of a host into the spool."""
    for each in entries:
        spool.add({"host": host, **each})


def event(kind: str, **values: Any) -> dict[str, Any]:
    return {"hook_event_name": kind, "session_id": "cc-1", "cwd": "/home/ada/boats", **values}


def entries_of(kind: str, **values: Any) -> list[dict[str, Any]]:
    """What an event of Claude Code leaves."""
    return host_named("claude-code").entries(event(kind, **values))


def test_while_lcm_is_down_events_wait_once_for_each_transcript(home):
    connect_to("claude-code")

    answers = [
        hooked("claude-code", event(kind, transcript_path="/home/ada/t.jsonl"), also=MODULES)
        for kind in ("UserPromptSubmit", "PreCompact", "SessionEnd")
    ]

    assert all((each.returncode, each.stdout) == (0, b"") for each in answers)
    assert all(each.stderr.strip() == b"[]" for each in answers)
    assert [entry["do"] for _, entry in spool.entries()] == ["import", "flush", "summarize"]
    assert host_state.read("claude-code", "activity.json")["event"]["what"] == "SessionEnd"


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_a_session_that_goes_on_is_imported_and_a_new_one_is_not(host):
    left = {
        source: [each["do"] for each in host_named(host).entries(
            event("SessionStart", source=source, transcript_path="/t.jsonl")
        )]
        for source in ("startup", "clear", "resume", "compact")
    }  # fmt: skip

    assert left == {"startup": [], "clear": [], "resume": ["import"], "compact": ["import"]}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("given", [b"", b"{", b"[]", b'"x"', b'{"hook_event_name": 7}', b"\xff", b'{"cwd": null}'])
@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_whatever_comes_the_host_sees_no_error(home, monkeypatch, capsys, host, given):
    # Recall asks an LCM that is down.
    connect_to(host)
    monkeypatch.setattr(hook, "_received", lambda: given)

    hook.run(host)

    assert capsys.readouterr().out == ""


def test_an_unknown_host_and_a_recall_without_lcm_are_lines_in_the_log(home, monkeypatch, capsys):
    connect_to("claude-code")
    monkeypatch.setattr(hook, "_received", lambda: json.dumps(event("SessionStart", source="compact")).encode())

    for host in ("no-such-host", "claude-code"):
        hook.run(host)

    assert (*capsys.readouterr(),) == ("", "")
    log = host_state.folder() / "hooks.log"
    assert "no-such-host" in log.read_text() and "claude-code: Unreachable" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_a_replay_imports_transcripts_and_those_of_subagents_as_children(used):
    main = transcript(used, "cc-1.jsonl", files.CLAUDE_CODE)
    child = transcript(used, "cc-1/subagents/agent-a1.jsonl", files.CLAUDE_CODE_AGENT)
    leave("claude-code", *entries_of("SubagentStop", transcript_path=main, agent_transcript_path=child)[::-1])

    first = lcm("--json", "hook", "replay").json
    leave("claude-code", {"do": "import", "file": main})
    again = replay()

    assert (first["done"], first["waiting"]) == (2, 0) and first["created"] > 0
    assert (again.done, again.created) == (1, 0)
    rows = {row.session_id: row for row in Conversation.objects.all()}
    assert rows["cc-1:a1"].parent_id == rows["cc-1"].pk
    assert rows["cc-1:a1"].parent_link == ParentLink.SUBAGENT


def test_a_replay_imports_a_transcript_with_a_broken_line_and_logs_its_number(used):
    path = transcript(used, "cc-1.jsonl", files.CLAUDE_CODE)
    Path(path).write_bytes(Path(path).read_bytes() + b'{"sessionId": "cc-\n')
    leave("claude-code", {"do": "import", "file": path})

    done = replay()

    assert (done.done, done.created, done.refused) == (1, 2, [])
    assert f"{path} was imported without its broken lines: [3]." in (host_state.folder() / "hooks.log").read_text()


def test_one_process_at_a_time_works_on_the_spool(used):
    leave("claude-code", {"do": "import", "file": transcript(used, "cc-1.jsonl", files.CLAUDE_CODE)})
    lock = spool.hold()
    assert lock is not None and spool.hold() is None

    beside = replay()
    with_it = replay(lock)

    assert (beside.done, beside.waiting) == (0, 1)
    assert (with_it.done, with_it.waiting) == (1, 0)
    assert spool.hold() is not None


@pytest.mark.parametrize("step", ["read_text", "unlink"])
def test_a_transcript_that_goes_on_while_its_entry_is_removed_waits_again(home, monkeypatch, step):
    leave("codex", {"do": "import", "file": "/t.jsonl"})
    [(name, entry)] = spool.entries()
    act = getattr(Path, step)

    def overtaken(path: Path, *given: Any) -> Any:
        patched.undo()
        leave("codex", {"do": "import", "file": "/t.jsonl"})
        return act(path, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Path, step, overtaken)
        spool.done(name, entry)

    assert spool.has_import("/t.jsonl")


def test_before_a_compaction_the_session_is_imported_and_flushed(used):
    path = transcript(used, "cc-1.jsonl", files.CLAUDE_CODE)
    leave("claude-code", *entries_of("PreCompact", transcript_path=path, prompt_id="p1"))

    report = replay()

    assert (report.done, report.waiting, report.refused) == (2, 0, [])
    boundary = CompactionBoundary.objects.get()
    assert boundary.host_reference == "cc-1:p1" and boundary.last_seq == Message.objects.count()


def test_what_a_host_cuts_is_summarized_up_to_the_cut_however_late_the_replay_is(used):
    texts = [f"Message {number} about port {5000 + number}. " * 40 for number in range(20)]
    lines = [files.claude_code_line(f"u{place + 1}", f"u{place}", text) for place, text in enumerate(texts)]
    path = transcript(used, "cc-2.jsonl", lines[:16])
    [_, flush] = entries_of("PreCompact", session_id="cc-2", transcript_path=path)
    transcript(used, "cc-2.jsonl", lines)
    leave("claude-code", {"do": "import", "file": path}, flush)

    replay()

    boundary = CompactionBoundary.objects.get()
    coverage = HostCompaction.from_settings().verify_coverage(
        conversation_id=boundary.conversation_id, host_reference=boundary.host_reference
    )
    assert (boundary.last_seq, coverage.summarized, coverage.raw) == (16, 16, 0)
    assert Conversation.objects.get().active_messages == 4


@pytest.mark.parametrize("stored", [0, 1])
def test_a_flush_waits_for_the_import_of_what_was_cut(used, monkeypatch, stored):
    lines = [files.claude_code_line(f"u{place + 1}", f"u{place}", f"Message {place}.") for place in range(3)]
    path = transcript(used, "cc-2.jsonl", lines[:stored])
    if stored:
        lcm("import", path)
    else:
        a_conversation("By another client.", session_id="cc-2")
    transcript(used, "cc-2.jsonl", lines[:2])
    [_, flush] = entries_of("PreCompact", session_id="cc-2", transcript_path=path)
    transcript(used, "cc-2.jsonl", lines)
    leave("claude-code", {"do": "import", "file": path}, flush)

    with monkeypatch.context() as patched:
        patched.setattr(Importer, "run", lambda self: 1 / 0)
        first = replay()
    before = CompactionBoundary.objects.count()
    second = replay()

    assert (first.waiting, before, second.waiting) == (2, 0, 0)
    boundary = CompactionBoundary.objects.get()
    assert Message.objects.get(seq=boundary.last_seq).content == "Message 1."


def two_sessions_to_flush(home: Path) -> int:
    """Leave the flushes of two imported sessions; returns the conversation of the first."""
    lines = [files.claude_code_line(f"u{place + 1}", f"u{place}", f"Message {place}.") for place in range(3)]
    for session, content in (("cc-1", files.CLAUDE_CODE), ("cc-2", lines)):
        path = transcript(home, f"{session}.jsonl", content)
        lcm("import", path)
        leave("claude-code", *entries_of("PreCompact", session_id=session, transcript_path=path))
    return Conversation.objects.order_by("pk").first().pk


def test_a_flush_waits_for_another_compaction_of_its_session_and_holds_up_no_other(used, monkeypatch):
    first = two_sessions_to_flush(used)
    flushed_before = []

    with ExitStack() as another:
        another.enter_context(another_session_compacts(first))

        def time_passes(_: float) -> None:
            flushed_before.append(list(CompactionBoundary.objects.values_list("conversation_id", flat=True)))
            another.close()

        monkeypatch.setattr(time, "sleep", time_passes)
        report = replay()

    assert report.waiting == 0
    assert CompactionBoundary.objects.count() == 2
    assert first not in flushed_before[0] and len(flushed_before[0]) == 1


def test_a_flush_that_waits_in_vain_is_left_for_the_next_event(used, monkeypatch):
    monkeypatch.setattr(replaying, "BUSY_SECONDS", 0)
    first = two_sessions_to_flush(used)

    with another_session_compacts(first):
        report = replay()

    assert (report.waiting, report.refused) == (1, [])
    assert replay().waiting == 0


def test_a_flush_of_what_was_never_imported_is_noted_and_ends(used):
    a_conversation("By another client.", session_id="cc-1")
    path = transcript(used, "cc-1.jsonl", files.CLAUDE_CODE)
    [_, flush] = entries_of("PreCompact", transcript_path=path)
    leave("claude-code", flush)

    report = replay()

    assert (report.done, report.waiting, len(report.refused)) == (1, 0, 1)
    assert not CompactionBoundary.objects.exists()


def test_a_session_that_ends_is_summarized_for_the_next_one(used):
    path = transcript(used, "cc-1.jsonl", files.CLAUDE_CODE)
    leave("claude-code", *entries_of("SessionEnd", transcript_path=path))

    report = replay()

    assert (report.done, report.waiting, report.refused) == (2, 0, [])
    assert HistoryJob.objects.get().conversation.session_id == "cc-1"


def test_what_cannot_be_imported_is_noted_and_stops_nothing_else(used):
    (used / "bad.jsonl").write_text('{"no": "message"}\n')
    for name in ("bad.jsonl", "gone.jsonl"):
        leave("codex", {"do": "import", "file": str(used / name)})
    good = transcript(used, "cc-1.jsonl", files.CLAUDE_CODE)
    leave("claude-code", {"do": "import", "file": good})

    report = replay()

    assert report.done == 3 and report.waiting == 0 and len(report.refused) == 1
    assert Conversation.objects.get().session_id == "cc-1"
    assert "import" in host_state.read("codex", "activity.json")["problem"]["what"]


def test_what_fails_unexpectedly_stops_nothing_else_and_is_left_to_a_person_in_the_end(used):
    # As no hook leaves it, and as a full disk leaves what a host compresses.
    leave("pi", {"do": "append", "messages": []})
    (used / "cut.jsonl.gz").write_bytes(gzip.compress(b"{}")[:12])
    (used / "cut.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd\xff\xff\xff")
    for name in ("cut.jsonl.gz", "cut.jsonl.zst"):
        leave("codex", {"do": "import", "file": str(used / name)})
    message = {"role": "user", "content": "Which port?", "idempotency_key": "k1"}
    leave("codex", {"do": "append", "session": "cur-1", "messages": [message]})

    in_background = [replay(spool.hold()) for _ in range(MOST_ATTEMPTS + 1)]
    by_hand = replay()

    assert (in_background[0].created, Message.objects.count()) == (1, 1)
    [kept] = [entry for _, entry in spool.entries() if entry["host"] == "pi"]
    assert kept["attempts"] == MOST_ATTEMPTS + 1
    assert [len(each.refused) > 0 for each in in_background] == [True] * MOST_ATTEMPTS + [False]
    assert by_hand.refused and by_hand.waiting == in_background[0].waiting
    assert "KeyError" in host_state.read("pi", "activity.json")["problem"]["what"]
    assert "KeyError" in (host_state.folder() / "hooks.log").read_text()


@pytest.mark.parametrize("refused", ["lcm_none", "revoked", "read"])
def test_what_waits_stays_where_the_key_is_refused_until_the_host_is_connected_again(used, refused):
    assert lcm("connect", "codex", "--yes").exit_code == 0
    connection = host_state.read("codex", "connection.json")
    match refused:
        case "revoked":
            keys.revoke(OPERATOR, key=connection["api_key"])
        case "read":
            ApiKey.objects.update(scopes=["read"])
            keys.forget_callers()
        case _:
            host_state.write("codex", "connection.json", {**connection, "api_key": refused})
    path = transcript(used, "cc-1.jsonl", files.CLAUDE_CODE)
    leave("codex", {"do": "import", "file": path})

    with_it = replay()
    again = lcm("--json", "connect", "codex", "--yes")
    after = replay()

    assert (with_it.done, with_it.waiting, len(with_it.refused)) == (0, 1, 1)
    assert again.json["made"] and host_state.read("codex", "connection.json")["api_key"] != connection["api_key"]
    assert (after.done, after.waiting) == (1, 0)
    assert Conversation.objects.get().session_id == "cc-1"


@pytest.fixture
def served(committed_db: None, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """LCM's API over HTTP, in this process, on a machine that may be too busy for hooks that an agent waits for."""
    monkeypatch.setattr(Host.lcm, "__defaults__", (60.0,))
    monkeypatch.setattr(agent_host, "COMPACTED_SECONDS", 60.0)
    monkeypatch.setattr(claude_code_host, "STATUS_SECONDS", 60.0)

    with site_served() as url:
        key = an_api_key()
        for host in ("claude-code", "codex", "cursor"):
            connect_to(host, url, key)
        # The first request loads what the others need.
        assert RestClient(url, key, timeout=60).get("conversations/") is not None
        yield url


def a_long_session(session: str = "cc-1") -> None:
    texts = (f"Message {number} about the harbour and port {5000 + number}. " * 40 for number in range(24))
    conversation = a_conversation(*texts, session_id=session)
    assert lcm("flush", str(conversation.conversation_id), "before").exit_code == 0


def context_of(answer: str) -> str:
    assert set(json.loads(answer)) == {"hookSpecificOutput"}
    inner = json.loads(answer)["hookSpecificOutput"]
    assert set(inner) == {"hookEventName", "additionalContext"}
    return str(inner["additionalContext"])


def test_after_its_compaction_claude_code_is_given_what_it_has_cut_and_cursor_with_its_hooks_nothing(
    served, monkeypatch
):
    a_long_session()
    host = host_named("claude-code")
    compacted, stopped = event("SessionStart", source="compact"), event("Stop", transcript_path="/home/ada/t.jsonl")

    given = context_of(host.answer(compacted))

    assert given.startswith("<lcm_injected mark=") and 1000 < len(given) <= 10_000
    assert "sum_" in given and "harbour" in given
    assert host.answer(event("SessionStart", source="resume")) == ""
    assert host.answer(stopped) == "" and host.entries(stopped)
    # Cursor has hooks of its own.
    monkeypatch.setenv("CURSOR_VERSION", "2.0")
    assert (host.answer(compacted), host.entries(stopped)) == ("", [])


def test_a_recall_waits_for_the_flush_before_it(served, monkeypatch):
    a_long_session()
    waits = iter([True, True, False])
    monkeypatch.setattr(spool, "has_flush", lambda session: session == "cc-1" and next(waits))

    given = context_of(host_named("claude-code").answer(event("SessionStart", source="compact")))

    assert "sum_" in given and list(waits) == []


def test_codex_is_given_it_once_with_the_prompt_after_its_compaction(served):
    a_long_session()
    host = host_named("codex")

    before = host.answer(event("UserPromptSubmit", prompt="Go on."))
    at_once = host.answer(event("PostCompact", trigger="auto"))
    given = host.answer(event("UserPromptSubmit", prompt="Go on."))
    after = host.answer(event("UserPromptSubmit", prompt="Go on."))

    assert (before, at_once, after) == ("", "", "")
    assert "sum_" in context_of(given) and len(context_of(given)) <= 9000


def test_codex_is_given_it_at_once_where_its_session_goes_on_with_an_event(served):
    host = host_named("codex")
    host.answer(event("PostCompact", trigger="auto"))

    unknown = host.answer(event("SessionStart", source="compact", cwd="/other"))
    a_long_session()
    given = host.answer(event("SessionStart", source="compact"))
    after = host.answer(event("UserPromptSubmit", prompt="Go on."))

    assert (unknown, after) == ("", "")
    assert "sum_" in context_of(given)


def test_what_cannot_be_recorded_takes_away_no_recall(served, monkeypatch, capsys):
    a_long_session()
    host_named("codex").answer(event("PostCompact", trigger="auto"))
    # As on a full disk, nothing can be written there.
    (host_state.folder() / "spool").write_text("")
    host_state.path_of("codex", "activity.json").mkdir()
    prompt = event("UserPromptSubmit", prompt="Go on.", transcript_path="/home/ada/t.jsonl")
    monkeypatch.setattr(hook, "_received", lambda: json.dumps(prompt).encode())

    hook.run("codex")

    assert "sum_" in context_of(capsys.readouterr().out)
    log = (host_state.folder() / "hooks.log").read_text()
    assert "codex: import is not recorded: " in log and "codex: the event is not noted: " in log


def test_a_full_spool_takes_no_more_says_so_and_is_worked_on(home, monkeypatch):
    monkeypatch.setattr(spool, "MOST_ENTRIES", 2)
    for name in ("a", "b", "a"):
        spool.add({"do": "import", "host": "codex", "file": name})
    monkeypatch.setattr(hook, "_received", lambda: json.dumps(event("Stop", transcript_path="/t.jsonl")).encode())
    started: list[str] = []
    monkeypatch.setattr(hook, "start_replay", started.append)

    hook.run("codex")

    assert started == ["codex"]
    assert "SpoolFull" in (host_state.folder() / "hooks.log").read_text()


def test_codex_does_not_wait_with_each_prompt_for_an_lcm_that_hangs(served, monkeypatch):
    a_long_session()
    codex = host_named("codex")
    connection = host_state.read("codex", "connection.json")
    prompt, compacted = event("UserPromptSubmit", prompt="Go on."), event("PostCompact", trigger="auto")

    codex.answer(compacted)
    with socket.create_server(("127.0.0.1", 0)) as hanging, monkeypatch.context() as patched:
        patched.setattr(agent_host, "COMPACTED_SECONDS", 0.2)
        connect_to("codex", f"http://127.0.0.1:{hanging.getsockname()[1]}")
        with pytest.raises(Unreachable):
            codex.answer(prompt)
        at_once = codex.answer(prompt)
    host_state.write("codex", "connection.json", connection)
    codex.answer(compacted)

    assert at_once == "" and "sum_" in context_of(codex.answer(prompt))


def test_all_requests_of_an_answer_have_one_deadline():
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        client = RestClient(f"http://127.0.0.1:{hanging.getsockname()[1]}", "lcm_none", 0.2)

        for reason in ("timed out", "no time is left"):
            with pytest.raises(Unreachable, match=reason):
                client.get("conversations/")


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999", "http://[::1"])
def test_an_address_that_cannot_be_called_is_an_lcm_that_does_not_answer(address):
    assert not RestClient(address, "lcm_none").is_ready()


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_a_session_begins_with_what_is_known_of_its_project(served, host):
    a_conversation("Which port?", "5433.", session_id="earlier", project="/home/ada/boats")

    given = host_named(host).answer(event("SessionStart", source="startup", session_id="new"))
    elsewhere = host_named(host).answer(event("SessionStart", source="startup", cwd="/other", session_id="new"))

    assert "earlier" in context_of(given)
    assert elsewhere == ""


def test_doctor_says_what_is_alive_and_what_to_do(served, home, monkeypatch):
    program = home / "bin/codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho codex-cli 7.8.9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    connect_to("codex")
    leave("codex", {"do": "import", "file": "/t.jsonl"})
    host_state.note("claude-code", event="Stop")

    shown = lcm("--json", "doctor")
    found = {each["host"]: each for each in shown.json["items"]}

    assert (shown.exit_code, found["codex"]["alive"], found["pi"].get("alive")) == (1, False, None)
    assert (found["codex"]["found"], found["codex"]["version"]) == (True, "codex-cli 7.8.9")
    assert found["claude-code"]["connected"] and found["claude-code"]["lcm_answers"]
    assert found["claude-code"]["last_event"].endswith("Stop")
    assert (found["codex"]["lcm_answers"], found["codex"]["pending"]) == (False, 1)
    assert "lcm up" in found["codex"]["advice"] and "/hooks" in found["codex"]["advice"]


def advice_on(host: str) -> str:
    return str(lcm("--json", "doctor", host).json["items"][0]["advice"])


def test_doctor_asks_for_trust_again_when_hooks_were_written_anew(used):
    assert lcm("connect", "codex", "--yes").exit_code == 0
    at_first = advice_on("codex")
    host_state.note("codex", event="Stop")
    trusted = advice_on("codex")
    hooks = used / ".codex/hooks.json"
    hooks.write_text(hooks.read_text().replace("hook codex", "hook nobody"))
    assert lcm("connect", "codex", "--yes").exit_code == 0

    assert ["/hooks" in each for each in (at_first, trusted, advice_on("codex"))] == [True, False, True]


def test_doctor_tells_what_was_changed_from_what_is_missing(used):
    assert lcm("connect", "codex", "--yes").exit_code == 0
    path = used / ".codex/config.toml"

    path.write_text(path.read_text().replace("http_headers", "enabled = true\nhttp_headers"))
    changed = advice_on("codex")
    path.unlink()
    missing = advice_on("codex")

    assert f"{path}: " in changed and "mcp_servers.lcm" in changed and "run `lcm connect codex` again" in changed
    assert "lacks what LCM wrote" not in changed
    assert "lacks what LCM wrote" in missing and "was changed" not in missing


def test_doctor_says_that_the_key_is_refused_and_what_failed_last(served):
    connect_to("codex", served)
    host_state.note("codex", problem="import: The file is empty.")
    host_state.note("claude-code", problem="import: The file is empty.")
    host_state.note("claude-code", **{"import": {"of": "/t.jsonl", "created": 2}})

    shown = lcm("--json", "doctor")
    found = {each["host"]: each for each in shown.json["items"]}

    assert (found["codex"]["lcm_answers"], found["codex"]["alive"]) == (True, False)
    assert "key" in found["codex"]["advice"] and "lcm connect codex" in found["codex"]["advice"]
    assert "The file is empty." in found["codex"]["advice"]
    assert "key" not in found["claude-code"]["advice"] and "empty" not in found["claude-code"]["advice"]


def test_doctor_shows_one_line_a_fact(served):
    connect_to("pi", served)
    host_state.note("pi", event="turn_end", problem="append: TypeError: fetch failed")

    shown = lcm("doctor", "pi").out

    assert re.search(r"^pi  .*connected", shown, re.M)
    assert re.search(r"^  last event: \S+ \S+ turn_end$", shown, re.M)
    assert shown.count("append: LCM did not answer") == 1
    assert "fetch failed" not in shown and max(map(len, shown.splitlines())) < 160


def test_doctor_warns_where_the_gateway_records_the_same_session(served):
    session = "0b3f2c1d-aaaa-bbbb-cccc-0123456789ab"
    imported = {"of": f"/home/ada/.claude/projects/boats/{session}.jsonl", "created": 2}
    host_state.note("claude-code", **{"import": imported})
    before = advice_on("claude-code")

    a_conversation("Hello", session_id=f"gateway/{session}")

    assert "The gateway records" in advice_on("claude-code") and "The gateway records" not in before


def test_the_status_line_says_what_is_stored_and_what_waits(served, monkeypatch, capsys):
    a_conversation("Which port?", "5433.", session_id="cc-1")
    leave("claude-code", {"do": "import", "file": "/t.jsonl"})
    monkeypatch.setattr(hook, "_received", lambda: b'{"session_id": "cc-1", "model": {"id": "x"}}')

    shown = []
    hook.run("claude-code", ["statusline"])
    shown.append(capsys.readouterr().out)
    connect_to("claude-code")
    hook.run("claude-code", ["statusline"])
    shown.append(capsys.readouterr().out)

    assert shown == ["LCM holds 2 messages, 1 to import", "LCM does not answer, 1 to import"]
    assert "event" not in host_state.read("claude-code", "activity.json")


def of_cursor(kind: str, **values: Any) -> dict[str, Any]:
    common = {"conversation_id": "c-1", "generation_id": "g-1", "workspace_roots": ["/home/ada/boats"]}
    return {"hook_event_name": kind, **common, **values}


def test_events_of_cursor_become_messages_once(served):
    cursor = host_named("cursor")
    events = [
        of_cursor("beforeSubmitPrompt", prompt="Which port?", attachments=[]),
        of_cursor("afterShellExecution", command="grep port a.conf", output="port = 5433", duration=4),
        of_cursor("afterMCPExecution", tool_name="search", tool_input='{"q": 1}', result_json="[]", duration=1),
        of_cursor("afterFileEdit", file_path="a.conf", edits=[{"old_string": "5432", "new_string": "5433"}]),
        of_cursor("afterAgentResponse", text="It is 5433."),
        of_cursor("stop", status="completed"),
    ]
    # One of them came twice, as the same command can.
    left = [entry for each in [*events, events[1]] for entry in cursor.entries(each)]
    for _ in range(2):
        leave("cursor", *left)
        report = replay()
        assert report.refused == []

    found = Conversation.objects.get(session_id="cursor:c-1")
    assert found.project.name == "/home/ada/boats"
    roles = [message.role for message in found.messages.order_by("seq")]
    assert roles == ["user", "tool", "tool", "tool", "assistant", "tool"]
    content = found.messages.get(seq=2).content
    assert "grep port a.conf" in content and "port = 5433" in content
    assert [cursor.replays(each) for each in events] == [False] * 4 + [True] * 2
    given = cursor.answer(of_cursor("sessionStart", conversation_id="c-2"))
    assert "c-1" in json.loads(given)["additional_context"]
    assert [entry["do"] for entry in cursor.entries(of_cursor("preCompact"))] == ["flush"]
