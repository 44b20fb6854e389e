"""Vectors are those of the texts as they stand now, whatever happens to texts and workers meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from conversations.audit import Act, AuditLog
from conversations.scope import Scope
from conversations.sql import rows
from integrity.repairs.quarantines import Quarantines
from integrity.retention.tiers import Retention
from lcmsite.connections import closing_connections
from retrieval.semantic.embedders import Embedders
from retrieval.semantic.models import EmbeddedConversation
from retrieval.semantic.types import EmbedderState
from retrieval.semantic.vector_table import VectorTable
from tests.conversations.ledger.ledgers import exported, imported
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.retrieval.semantic.conftest import TEXTS, erase
from tests.retrieval.semantic.embedder_server import EmbedderServer


def rewrite(conversation_id: int, seq: int, text: str) -> None:
    """Write a text anew, as a repair does."""
    with transaction.atomic():
        AuditLog(Scope(a_workspace().pk, actor="test")).record(Act.RESTORE, conversation_id=conversation_id)
        statement = "UPDATE messages SET content = %s WHERE conversation_id = %s AND seq = %s RETURNING 1"
        assert rows(statement, [text, conversation_id, seq])


def during_the_next_call(site, act: Callable[[], None]) -> None:
    """Have something happen while the embedder is at work."""

    def refuses(body) -> None:
        site.server.refuses = lambda body: None
        closing_connections(act)

    site.server.refuses = refuses


def test_a_text_that_a_repair_writes_anew_is_embedded_anew(site):
    conversation = a_conversation(*TEXTS).conversation_id
    site.set_up()
    before = site.vectors()

    rewrite(conversation, 2, "An automobile in the rain")
    meanwhile = site.vectors()
    [embedder] = site.embed().embedders

    assert (meanwhile, site.vectors()) == ([before[0], *before[2:]], before)
    assert set(site.found("vehicle", limit=3)) == {1, 2, 4}
    assert (embedder.passages, embedder.messages_embedded) == (4, 4)


def test_what_is_written_anew_while_it_is_embedded_has_no_vector_of_the_old_text(site):
    conversation = a_conversation(*TEXTS).conversation_id
    Embedders.from_settings().set_up()
    during_the_next_call(site, lambda: rewrite(conversation, 2, "An automobile in the rain"))

    site.embed()

    assert set(site.found("vehicle", limit=3)) == {1, 2, 4}
    assert len(site.vectors()) == 4


def test_what_is_erased_while_it_is_embedded_leaves_no_vector(site):
    conversation = a_conversation(*TEXTS).conversation_id
    Embedders.from_settings().set_up()
    during_the_next_call(site, lambda: erase(conversation, 1))

    site.embed()

    assert len(site.vectors()) == 3
    assert 1 not in site.found("automobile")


@pytest.mark.parametrize("away", ["cold", "quarantined"])
def test_what_comes_back_while_a_conversation_is_embedded_is_embedded_too(site, away):
    scope = Scope(a_workspace().pk, actor="test")
    conversation = a_conversation(*TEXTS).conversation_id
    first = a_store().list_messages(conversation_id=conversation)[0].id
    if away == "cold":
        Retention.from_settings(scope).archive(conversation_id=conversation)
        say(conversation, "One more car")
    else:
        held = Quarantines.from_settings(scope).quarantine(id=first, reason="it is wrong").quarantine_id
    Embedders.from_settings().set_up()

    def come_back() -> None:
        if away == "cold":
            Retention.from_settings(scope).thaw(conversation_id=conversation)
        else:
            Quarantines.from_settings(scope).release(quarantine_id=held)

    during_the_next_call(site, come_back)
    site.embed()

    assert len(site.vectors()) == (5 if away == "cold" else 4)
    assert 1 in site.found("automobile", limit=3)


def test_a_worker_that_is_killed_before_it_stores_leaves_nothing_and_the_next_does_it_all(site, monkeypatch):
    a_conversation(*TEXTS)
    Embedders.from_settings().set_up()
    with monkeypatch.context() as killed:
        # No handler of errors takes it for one: as where a process ends.
        killed.setattr(VectorTable, "store", lambda *_, **__: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            site.embed()
    left = EmbeddedConversation.objects.get()

    early = site.embed().embedders[0].messages_embedded
    site.wake_all()
    [embedder] = site.embed().embedders

    assert (left.state, left.upto_seq, early) == ("leased", 0, 0)
    assert (embedder.passages, embedder.state, len(site.vectors())) == (4, EmbedderState.CURRENT, 4)


def test_an_embedder_that_is_gone_for_good_keeps_no_other_from_taking_its_place(site):
    conversation = a_conversation(*TEXTS).conversation_id
    site.set_up()
    say(conversation, "An automobile show")
    site.server.refuses = lambda body: 500
    for _ in range(6):
        site.grep("automobile", "hybrid")
    with EmbedderServer(dimension=64) as other:
        site.configure(url=other.url, model="other")

        status = site.set_up()

        assert [each.state for each in status.embedders] == [EmbedderState.OLD, EmbedderState.CURRENT]
        assert site.found("automobile", limit=3) and {*other.models} == {"other"}
        assert {1, 4, 5} == set(site.found("automobile", limit=3))


def test_a_ledger_holds_no_vectors_and_what_it_brings_is_embedded_with_the_next_sweep(site, tmp_path):
    conversation = a_conversation(*TEXTS, session_id="harbour").conversation_id
    ledger = exported(conversation)
    site.set_up()

    with_vectors = exported(conversation)
    [copy] = imported(with_vectors, tmp_path, session_id="another").conversations
    site.embed()

    assert len(with_vectors.splitlines()) == len(ledger.splitlines()) and b"embedding" not in with_vectors
    assert set(site.found("automobile", conversation_id=copy.conversation_id, limit=2)) == {1, 4}
