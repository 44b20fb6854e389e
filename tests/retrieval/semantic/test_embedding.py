"""Embedding goes on in the background: nothing is lost, nothing is kept that may not be, and what fails is told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from compaction.llm.embeddings import EmbeddingClient
from compaction.llm.endpoints import ModelEndpoints
from compaction.llm.types import BadAnswer, BreakerState
from conversations.errors import Conflict, Invalid, LcmError, NotFound, Unavailable
from conversations.policy import SecretFile
from conversations.scope import Scope
from conversations.sql import rows
from integrity.repairs.quarantines import Quarantines
from integrity.retention.tiers import Retention
from retrieval.semantic import vector_table
from retrieval.semantic.embedders import Embedders
from retrieval.semantic.embedding_worker import MOST_TRIES
from retrieval.semantic.models import EmbeddedConversation, Embedder
from retrieval.semantic.types import EmbedderState, IndexState
from tests.factories import a_conversation, a_workspace, say
from tests.retrieval.semantic.conftest import TEXTS, erase
from tests.retrieval.semantic.embedder_server import EmbedderServer
from tests.statements import counted_statements, execute


def refusal_of(site, mode: str = "semantic") -> LcmError:
    with pytest.raises(LcmError) as refused:
        site.grep("automobile", mode)
    return refused.value


def found_by_words_alone(site) -> str:
    """What a search by words and meaning says, which finds what words find."""
    found = site.grep("garden", "hybrid")
    assert [match.first_seq for match in found.matches] == site.found("garden", "full_text") == [2]
    assert found.note.startswith("Found by words alone")
    return found.note


def test_settings_without_an_embedder_are_named(site):
    a_conversation(*TEXTS)

    for model, missing in (("small", "LCM_EMBEDDER_URL is"), ("", "LCM_EMBEDDER_URL and LCM_EMBEDDER_MODEL are")):
        site.configure(url="", model=model)

        for note in (site.status.note, found_by_words_alone(site), refusal_of(site).detail):
            assert f"{missing} not set." in note


@pytest.mark.parametrize("taken", ["erased", "cold", "quarantined"])
def test_vectors_go_with_their_texts_and_come_back_with_them(site, taken):
    conversation = a_conversation(*TEXTS).conversation_id
    site.set_up()
    before = site.vectors()
    scope = Scope(a_workspace().pk, actor="test")

    if taken == "erased":
        erase(conversation, 1)
    elif taken == "cold":
        Retention.from_settings(scope).archive(conversation_id=conversation)
    else:
        held = Quarantines.from_settings(scope).quarantine(id=f"msg_{before[0]}", reason="it is wrong")
    site.embed()

    assert site.vectors() == ([] if taken == "cold" else before[1:])
    assert 1 not in site.found("automobile")
    if taken == "cold":
        Retention.from_settings(scope).thaw(conversation_id=conversation)
    elif taken == "quarantined":
        Quarantines.from_settings(scope).release(quarantine_id=held.quarantine_id)
    site.embed()
    assert site.vectors() == (before[1:] if taken == "erased" else before)


def test_while_the_embedder_is_gone_words_find_everything_and_embedding_goes_on_later(site):
    conversation = a_conversation(*TEXTS).conversation_id
    site.set_up()
    say(conversation, "An automobile show")
    site.server.refuses = lambda body: 500

    status = site.embed()
    refusal = refusal_of(site)

    assert refusal.code == "embedder_unavailable" and refusal.retryable and isinstance(refusal, Unavailable)
    assert "embedder" in found_by_words_alone(site)
    assert status.embedders[0].messages_embedded == 4 and "fault" in status.embedders[0].last_error
    site.server.refuses = lambda body: None
    site.wake_all()
    assert site.embed().embedders[0].messages_embedded == 5
    assert 5 in site.found("automobile", limit=3)


def test_an_embedder_that_fails_again_and_again_is_left_alone(site):
    a_conversation(*TEXTS)
    site.set_up()
    site.server.refuses = lambda body: 500
    for _ in range(5):
        refusal_of(site)
    asked = len(site.server.models)

    assert "left alone" in refusal_of(site).detail
    assert len(site.server.models) == asked
    [listed] = [each for each in ModelEndpoints.from_settings().list_endpoints() if each.name == "embedder"]
    assert (listed.state, listed.failures) == (BreakerState.OPEN, 5)
    assert ModelEndpoints.from_settings().reset_endpoint(name="embedder").state is BreakerState.CLOSED
    assert "left alone" not in refusal_of(site).detail


def test_a_worker_that_dies_goes_on_where_it_stopped(site):
    a_conversation(*(f"Message {n} of a long conversation" for n in range(100)))
    Embedders.from_settings().set_up()
    began = len(site.server.texts)
    site.server.refuses = lambda body: 503 if len(site.server.texts) - began >= 64 else None

    half = site.embed().embedders[0]
    site.server.refuses = lambda body: None
    site.wake_all()
    whole = site.embed().embedders[0]

    assert (half.messages_embedded, half.state) == (64, EmbedderState.BUILDING)
    assert (whole.messages_embedded, whole.state) == (100, EmbedderState.CURRENT)
    assert len(site.server.texts) - began == 100


def test_after_the_clock_was_set_back_embedding_goes_on_within_an_hour(site):
    a_conversation(*TEXTS)
    site.set_up()
    soon, tomorrow = (timezone.now() + timedelta(hours=hours) for hours in (2, 24))
    for state in ("queued", "leased"):
        EmbeddedConversation.objects.update(state=state, run_after=tomorrow, leased_until=tomorrow)

        site.embed()

        waiting = EmbeddedConversation.objects.get()
        assert max(waiting.run_after, waiting.leased_until) < soon


@pytest.mark.parametrize(("status", "tries"), [(400, 1), (500, MOST_TRIES)])
def test_a_text_without_a_vector_is_set_aside_with_the_reason_and_tried_again_on_request(site, status, tries):
    a_conversation(TEXTS[0], "The garden. " * 120 + "It needs rain.", *TEXTS[2:])
    site.server.refuses = lambda body: status if any("rain" in text for text in body["input"]) else None
    Embedders.from_settings().set_up()

    for number in range(1, tries):
        waiting = site.embed().embedders[0]
        work = EmbeddedConversation.objects.get()
        assert (waiting.messages_embedded, waiting.passages_refused, work.attempts) == (0, 0, number)
        assert "HTTP 500" in waiting.last_error
        assert work.run_after > timezone.now() + timedelta(seconds=25 * 2**number)
        site.wake_all()
    [embedder] = site.embed().embedders
    asked = len(site.server.models)
    site.wake_all()
    site.embed()

    assert (embedder.passages, embedder.passages_refused, embedder.state) == (4, 1, EmbedderState.CURRENT)
    [refusal] = embedder.refusals
    assert f"passage 1 of msg_{site.vectors()[1]}" in refusal and f"HTTP {status}" in refusal
    assert len(site.server.models) == asked
    site.server.refuses = lambda body: None
    [again] = site.set_up().embedders
    assert (again.passages, again.passages_refused, again.refusals, again.messages_embedded) == (5, 0, (), 4)


def test_nothing_is_set_aside_while_the_embedder_fails_at_everything(site):
    a_conversation(*TEXTS)
    Embedders.from_settings().set_up()
    site.server.refuses = lambda body: 500

    for _ in range(MOST_TRIES + 1):
        [embedder] = site.embed().embedders
        site.wake_all()

    assert (embedder.messages_embedded, embedder.passages_refused, embedder.conversations_waiting) == (0, 0, 1)
    assert EmbeddedConversation.objects.get().attempts == 0
    site.server.refuses = lambda body: None
    assert site.embed().embedders[0].passages == 4


def test_until_everything_is_embedded_words_are_searched_and_the_operator_is_told_the_share(site):
    a_conversation(*TEXTS)
    Embedders.from_settings().set_up()

    with counted_statements() as sent:
        refusal = refusal_of(site)

    assert (refusal.code, type(refusal).__mro__[1]) == ("semantic_not_ready", Conflict)
    assert "lcm embed status" in refusal.detail and "%" not in refusal.detail
    assert "lcm embed status" in found_by_words_alone(site)
    assert "0 % of all messages" in site.status.note
    # It would count the messages of everybody.
    assert not [statement for statement in sent if "embedded_conversations" in statement]


def test_an_index_whose_making_was_broken_off_is_made_again(site):
    a_conversation(*TEXTS)
    Embedders.from_settings().set_up()
    table = vector_table.VectorTable.of(Embedder.objects.get())
    table.build_index()
    rows(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'embedding_vectors_1_hnsw_idx'::regclass RETURNING 1"
    )
    assert table.state()[0] is IndexState.INCOMPLETE

    site.embed()

    assert table.state()[0] is IndexState.BUILT
    assert site.found("automobile", limit=1)


def test_a_table_that_was_made_without_an_index_gets_it_at_the_next_set_up(site):
    a_conversation(*TEXTS)
    Embedders.from_settings().set_up()
    execute("DROP INDEX embedding_vectors_1_workspace_idx")

    site.set_up()

    assert rows("SELECT to_regclass('embedding_vectors_1_workspace_idx') IS NOT NULL") == [(True,)]
    assert site.found("automobile", limit=1)


def test_another_model_is_built_beside_the_one_that_is_searched_and_takes_its_place(site):
    a_conversation(*TEXTS)
    site.set_up()
    with EmbedderServer(dimension=64) as other:
        site.configure(url=other.url, model="large-texts,large-questions", embedder_key="sk-other")
        Embedders.from_settings().set_up()
        beside = site.status

        still = site.found("automobile", limit=1)
        asked_of_the_first = site.server.models[-1], site.server.keys[-1]
        after = site.embed()

        assert [each.state for each in beside.embedders] == [EmbedderState.CURRENT, EmbedderState.BUILDING]
        assert still in ([1], [4])
        assert asked_of_the_first == ("small", None)
        assert [each.state for each in after.embedders] == [EmbedderState.OLD, EmbedderState.CURRENT]
        assert site.found("automobile", limit=1) in ([1], [4])
        assert {*other.models} == {"large-texts", "large-questions"} and {*other.keys} == {"Bearer sk-other"}
        [left] = Embedders.from_settings().drop(embedder_id=after.embedders[0].embedder_id).embedders
        assert left.dimension == 64
        with pytest.raises(NotFound):
            Embedders.from_settings().drop(embedder_id=after.embedders[0].embedder_id)


def test_another_model_takes_its_place_while_the_one_before_it_refuses_the_key(site):
    conversation = a_conversation(*TEXTS).conversation_id
    site.server.key = "Bearer sk-first"
    site.configure(embedder_key="sk-first")
    site.set_up()
    with EmbedderServer(dimension=64) as other:
        site.configure(url=other.url, model="large", embedder_key="sk-other", breaker_failures=1)
        say(conversation, "One more")
        Embedders.from_settings().set_up()

        first, second = site.embed().embedders

        assert (first.state, second.state) == (EmbedderState.OLD, EmbedderState.CURRENT)
        assert second.messages_embedded == 5 and site.found("automobile", limit=1) in ([1], [4])
        assert "Bearer sk-other" not in site.server.keys


def test_a_model_whose_key_is_gone_is_not_asked_again_and_the_status_says_so(site):
    conversation = a_conversation(*TEXTS).conversation_id
    site.server.key = "Bearer sk-first"
    site.configure(embedder_key="sk-first")
    site.set_up()
    site.configure(url="http://127.0.0.1:9/v1", model="large", embedder_key="sk-other")
    say(conversation, "One more")

    site.embed()
    asked = len(site.server.models)
    site.wake_all()
    status = site.embed()

    assert len(site.server.models) == asked
    assert "run `lcm embed setup`" in status.note and "in use, small, rejects LCM's calls" in status.note
    site.server.key = None
    site.configure(url=site.server.url)
    assert site.embed().embedders[0].messages_embedded == 5


def test_a_key_in_a_file_is_read_anew_and_without_it_no_call_is_made(site, tmp_path):
    conversation = a_conversation(*TEXTS).conversation_id
    file = tmp_path / "key"
    file.write_text("sk-first\n")
    site.configure(embedder_key=SecretFile(str(file)))
    site.set_up()
    assert {*site.server.keys} == {"Bearer sk-first"}
    asked = len(site.server.keys)
    say(conversation, "One more")

    for unusable in ("", "sk-second\nsk-third"):
        file.write_text(unusable)
        status = site.embed()
        site.wake_all()
        assert "LCM_EMBEDDER_KEY" in found_by_words_alone(site) and "sk-" not in refusal_of(site).detail
        assert status.embedders[0].messages_embedded == 4 and len(site.server.keys) == asked
    file.write_text("sk-fourth\n")

    assert site.embed().embedders[0].messages_embedded == 5
    assert {*site.server.keys[asked:]} == {"Bearer sk-fourth"}


def test_vectors_of_another_length_are_refused_until_the_model_is_set_up_again(site):
    conversation = a_conversation(*TEXTS).conversation_id
    site.set_up()
    site.server.dimension = 128
    say(conversation, "One more")

    status = site.embed()

    assert refusal_of(site).code == "wrong_dimension"
    assert "128" in found_by_words_alone(site) and "128" in status.embedders[0].last_error
    assert len(site.vectors()) == 4
    assert [each.dimension for each in site.set_up().embedders] == [128]
    assert site.found("automobile", limit=1) in ([1], [4])


def test_without_pgvector_nothing_is_set_up_and_the_refusal_says_why(site, monkeypatch):
    a_conversation(*TEXTS)
    monkeypatch.setattr(vector_table, "pgvector_version", lambda: None)

    with pytest.raises(Conflict, match="has no pgvector") as refused:
        Embedders.from_settings().set_up()

    assert refused.value.code == "no_pgvector"
    assert not Embedder.objects.exists() and found_by_words_alone(site)


def test_where_pgvector_went_away_words_find_everything_and_it_can_be_set_up_again(site):
    a_conversation(*TEXTS)
    site.set_up()
    execute("DROP EXTENSION vector CASCADE")

    assert refusal_of(site).code == "semantic_not_ready"
    assert "lcm embed setup" in found_by_words_alone(site)
    assert site.status.embedders[0].index is IndexState.LOST and not site.status.is_ready
    assert site.set_up().is_ready
    assert site.found("automobile", limit=1) in ([1], [4])


def test_with_settings_that_cannot_be_used_or_where_nobody_answers_nothing_is_set_up(site):
    for wrong, says in (
        ({"embedder_url": "", "embedder_model": "small"}, "LCM_EMBEDDER_URL"),
        ({"embedder_url": "http://me:secret@host/v1", "embedder_model": "small"}, "no user"),
        ({"embedder_url": "http://host/v1", "embedder_model": "a,b,c"}, "LCM_EMBEDDER_MODEL"),
        ({"embedder_url": "http://host/v1", "embedder_model": "a", "embedder_key": "two words"}, "LCM_EMBEDDER_KEY"),
        (
            {"embedder_url": "http://host/v1", "embedder_model": "a", "embedder_key": SecretFile("/none")},
            "LCM_EMBEDDER_KEY_FILE: the file /none cannot be read",
        ),
    ):
        site.settings.LCM = wrong
        with pytest.raises(Invalid, match=says) as refused:
            Embedders.from_settings().set_up()
        assert "secret" not in refused.value.detail
    site.configure(url="http://127.0.0.1:9/v1")

    with pytest.raises(Unavailable, match="no connection"):
        Embedders.from_settings().set_up()

    assert not Embedder.objects.exists() and not EmbeddedConversation.objects.exists()


@pytest.mark.parametrize("number", [10**400, 1e308], ids=["integer", "float"])
def test_numbers_that_are_too_large_are_no_vector(number):
    with EmbedderServer() as server:
        server.answer = lambda texts: {"data": [{"embedding": [number] * 9}]}
        with pytest.raises(BadAnswer, match="not one vector for each text"):
            EmbeddingClient(url=server.url, model="small").embed(["text"])
