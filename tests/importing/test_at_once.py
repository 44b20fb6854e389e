"""Imports beside plugins that store the same messages, signals, and outages of the database."""

import os
import signal
import threading

import pytest
from django.db import connection

from conversations.models import Conversation, Message
from conversations.store.read import seqs_of_keys
from lcmsite.connections import closing_connections
from lcmsite.importing import discovery_verbs, importer, resume_check
from lcmsite.importing.plugin_sessions import plugin_messages
from lcmsite.importing.sweeping import Sweeper
from tests.committed import another_connection
from tests.conversations.appending import at_once
from tests.factories import a_conversation, say
from tests.importing import host_files as files
from tests.lcmsite.callers import lcm

CHILD = {"id": "codex-2", "parent_thread_id": "codex-1"}


def test_what_a_plugin_stores_during_an_import_stays_in_the_context(committed_db, imported, monkeypatch):
    lines = [*files.PI[:4], files.pi_line("f", "b", "user", "Why?")]
    *begun, new = (message for line in lines for message in plugin_messages("pi", line))
    session = a_conversation(session_id="pi:pi-1", project="boats").conversation_id
    say(session, *begun)
    plugin = threading.Thread(target=closing_connections, args=(lambda: say(session, new),))

    def find_seqs(conversation_id, keys):
        found = seqs_of_keys(conversation_id, keys)
        if new.idempotency_key in keys and plugin.ident is None:
            plugin.start()
            plugin.join(1)
        return found

    monkeypatch.setattr(importer, "seqs_of_keys", find_seqs)
    imported("pi-1.jsonl", files.lines_of(lines))
    plugin.join()

    stored = Conversation.objects.get()
    assert (stored.next_seq, stored.head_seq) == (4, 3)


def test_a_file_that_two_import_at_once_is_refused_to_neither(committed_db, imported, monkeypatch):
    imported("codex.jsonl", files.lines_of(files.CODEX))
    lines = files.lines_of([*files.CODEX, {**files.CODEX[1], "timestamp": files.ISO.replace("12:", "13:")}])
    before, find = Message.objects.count(), resume_check.seqs_of_keys

    def find_before_the_other(*given):
        found = find(*given)
        monkeypatch.setattr(resume_check, "seqs_of_keys", find)
        at_once(lambda _: imported("codex.jsonl", lines), workers=1)
        return found

    monkeypatch.setattr(resume_check, "seqs_of_keys", find_before_the_other)
    imported("codex.jsonl", lines)

    assert Message.objects.count() == before + 1


@pytest.mark.parametrize("first", ["codex-1", "codex-2"])
def test_a_parent_and_its_child_that_are_imported_at_once_are_linked(committed_db, imported, monkeypatch, first):
    sessions = {"codex-1": files.CODEX, "codex-2": [files.CODEX[0] | {"payload": CHILD}, *files.CODEX[1:]]}
    [second] = sessions.keys() - {first}
    write = importer.Importer._write

    def write_with_the_other(self, batch):
        write(self, batch)
        # The first is not committed yet when the second is stored.
        monkeypatch.setattr(importer.Importer, "_write", write)
        at_once(lambda _: imported(f"{second}.jsonl", files.lines_of(sessions[second])), workers=1)

    monkeypatch.setattr(importer.Importer, "_write", write_with_the_other)
    imported(f"{first}.jsonl", files.lines_of(sessions[first]))

    assert Conversation.objects.get(session_id="codex-2").parent.session_id == "codex-1"


def test_a_watch_outlasts_an_outage_and_says_after_a_signal_what_it_stored(committed_db, codex_home, monkeypatch):
    monkeypatch.setattr(discovery_verbs, "QUIET_SECONDS", -1)
    # A time ahead, as from a clock that was set back, is no reason to leave a file out.
    os.utime(codex_home / ".codex/sessions/2026/01/31/rollout-1.jsonl", (2**32, 2**32))
    before = signal.getsignal(signal.SIGTERM)
    sweep, ended = Sweeper.sweep, []

    def sweep_without_connection_at_first(*given):
        if not ended:
            ended.append(connection.connection.info.backend_pid)
            with another_connection() as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", ended)
            return sweep(*given)
        found = sweep(*given)
        os.kill(os.getpid(), signal.SIGTERM)
        return found

    monkeypatch.setattr(Sweeper, "sweep", sweep_without_connection_at_first)

    found = lcm("--json", "watch", "--seconds", "0.2", "--directory", str(codex_home / "boats"))

    assert found.exit_code == 0 and found.err.startswith("The database does not respond."), found.err
    assert (found.json["files"], found.json["created"]) == (1, Message.objects.count())
    assert signal.getsignal(signal.SIGTERM) == before
