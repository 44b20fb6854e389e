"""Several processes may embed at once: none undoes what another does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from conversations.models import Message
from conversations.scope import Scope
from integrity.repairs.quarantines import Quarantines
from lcmsite.connections import closing_connections
from retrieval.semantic.embedders import Embedders
from retrieval.semantic.embedding_worker import EmbeddingWorker
from retrieval.semantic.models import EmbeddedConversation, Embedder
from retrieval.semantic.types import EmbedderState, IndexState
from retrieval.semantic.vector_table import VectorTable
from tests.conversations.appending import a_lock_is_awaited, at_once
from tests.factories import a_conversation, a_workspace
from tests.flows.processes import wait_until
from tests.retrieval.semantic.conftest import TEXTS


def started(work: Callable[[], object]) -> threading.Thread:
    """A thread with a connection of its own that does this."""
    thread = threading.Thread(target=closing_connections, args=(work,), daemon=True)
    thread.start()
    return thread


def test_an_index_under_way_is_left_to_the_process_that_builds_it(site):
    a_conversation(*TEXTS)
    Embedders.from_settings().set_up()
    table = VectorTable.of(Embedder.objects.get())

    with transaction.atomic(), connection.cursor() as cursor:
        # Until this transaction ends, no index of the table is complete.
        cursor.execute(f"LOCK TABLE {table.name} IN ROW EXCLUSIVE MODE")
        builder = started(site.embed)
        wait_until(lambda: table.state()[0] is IndexState.INCOMPLETE, seconds=30, what="the index is begun")
        other = started(Embedders.from_settings().switch_if_complete)
        other.join(10)
        is_left_alone = not other.is_alive()
    for thread in (builder, other):
        thread.join(30)

    assert is_left_alone
    assert table.state()[0] is IndexState.BUILT
    assert site.status.embedders[0].state is EmbedderState.CURRENT


def test_an_embedder_that_is_set_up_twice_at_once_is_there_once(site):
    a_conversation(*TEXTS)
    together = threading.Barrier(2)
    site.server.refuses = lambda body: together.wait(30) and None

    statuses = at_once(lambda worker: Embedders.from_settings().set_up(), workers=2)

    assert [len(status.embedders) for status in statuses] == [1, 1]
    assert Embedder.objects.count() == EmbeddedConversation.objects.count() == 1


def test_a_message_that_is_quarantined_while_its_vectors_are_stored_has_none(site):
    conversation = a_conversation(*TEXTS).conversation_id
    Embedders.from_settings().set_up()
    held = Message.objects.get(conversation_id=conversation, seq=1).pk

    with transaction.atomic():
        Quarantines.from_settings(Scope(a_workspace().pk, actor="test")).quarantine(id=f"msg_{held}", reason="wrong")
        worker = started(EmbeddingWorker.from_settings().work)
        wait_until(a_lock_is_awaited, seconds=30, what="vectors are stored")
    worker.join(30)

    assert len(site.vectors()) == 3 and held not in site.vectors()


def test_a_lease_is_renewed_before_each_call(site):
    a_conversation(*TEXTS)
    Embedders.from_settings().set_up()
    left: list[float] = []

    def refuses(body):
        [leased_until] = EmbeddedConversation.objects.values_list("leased_until", flat=True)
        left.append((leased_until - timezone.now()).total_seconds())
        # As if the call took nearly as long as the lease.
        EmbeddedConversation.objects.update(leased_until=timezone.now() + timedelta(seconds=1))
        connection.close()
        return 400 if len(body["input"]) > 1 else None

    site.server.refuses = refuses
    site.embed()

    assert len(left) == 5 and min(left) > 100
