"""Imports beside plugins that store the same messages."""

import threading

from conversations.models import Conversation
from conversations.store.read import seqs_of_keys
from lcmsite.connections import closing_connections
from lcmsite.importing import importer
from lcmsite.importing.plugin_sessions import plugin_messages
from tests.factories import a_conversation, say
from tests.importing import host_files as files


def test_what_a_plugin_stores_during_an_import_stays_in_the_context(committed_db, imported, monkeypatch):
    lines = [*files.PI[:3], files.pi_line("f", "b", "user", "Why?")]
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
