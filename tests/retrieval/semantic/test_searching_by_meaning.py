"""Where an embedder is set up, messages are found by what they mean, and contexts and answers with them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from conversations.errors import Invalid
from conversations.scope import Scope
from conversations.sql import rows
from conversations.types import NewMessage, Role
from retrieval.agent_turns import Turns
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from retrieval.semantic.embedding_worker import EmbeddingWorker
from retrieval.semantic.models import Embedder
from retrieval.semantic.types import EmbedderState, IndexState
from retrieval.semantic.vector_table import VectorTable, as_text
from tests.factories import a_conversation, a_tool_call, a_tool_result, a_workspace, say
from tests.pasts import a_project, a_session, a_session_summary
from tests.retrieval.semantic.conftest import Site
from tests.retrieval.semantic.embedder_server import vector_of
from tests.statements import counted_statements, execute

SAID = ("My car was fixed on Monday", "The garden needs rain", "A kitten sleeps here", "Dinner is at eight")


@pytest.fixture
def hasty_index(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The index is taken wherever it can be, and stops early if the search does not say otherwise."""
    monkeypatch.setattr("retrieval.search.semantic_search.BREADTH", 10)
    settings = "SELECT set_config('enable_sort', %s, false), set_config('hnsw.max_scan_tuples', %s, false)"
    rows(settings, ["off", "1"])
    yield
    rows(settings, ["on", "20000"])


def with_passages_beside(text: str, count: int, *, dimension: int) -> None:
    """Give another workspace so many passages that mean nearly this."""
    chance = random.Random(7)
    middle = vector_of(text, dimension)
    vectors = [as_text([each + chance.gauss(0, 0.1) for each in middle]) for _ in range(count)]
    insert = f"""
        INSERT INTO {VectorTable.of(Embedder.objects.get()).name}
        SELECT 1000 + place, 0, 0, 1, 1000, %s, embedding::halfvec({dimension})
        FROM unnest(%s::text[]) WITH ORDINALITY AS given(embedding, place)
    """
    execute(insert, a_workspace("others").pk, vectors)


def test_a_message_is_found_without_one_of_its_words_and_the_passage_is_shown(site):
    conversation = a_conversation(*SAID)
    status = site.set_up()

    [best, *_] = site.grep("automobile repaired", conversation_id=conversation.conversation_id).matches

    assert status.is_ready and status.embedders[0].state is EmbedderState.CURRENT
    assert status.embedders[0].index is IndexState.BUILT
    assert (best.first_seq, best.snippet.text, best.snippet.offset) == (1, SAID[0], 0)
    assert site.grep("automobile repaired", "full_text").matches == ()


def test_what_all_messages_of_a_conversation_have_in_common_does_not_decide(site):
    subject, detail = "the weather app", "the weather app has an automobile"
    conversation = a_conversation(*[subject] * 8, detail).conversation_id
    other = a_conversation(subject, detail).conversation_id
    site.set_up()

    assert site.found("the weather app vehicle", conversation_id=conversation, limit=1) == [9]
    assert site.found("the weather app", conversation_id=other, limit=1) == [1]


def test_both_ways_together_find_what_either_finds(site):
    a_conversation(*SAID, "An automobile show")
    site.set_up()

    assert set(site.found("automobile", "hybrid", limit=2)) == {1, 5}
    assert site.found("automobile", "full_text") == [5]


def test_a_long_message_loses_less_by_its_length_if_embeddings_are_searched_too(site):
    words = " ".join(f"word{n}" for n in range(60))
    a_conversation("The harbour is near", *["other things"] * 20, words + " the harbour" * 12)
    site.set_up()
    together = site.found("harbour", "hybrid", limit=2)
    site.server.refuses = lambda body: 500

    assert together == [22, 1]
    assert site.found("harbour", "full_text") == site.found("the harbour", "hybrid", limit=2) == [1, 22]


def test_pages_follow_each_other(site):
    a_conversation(*(f"Word number {n} of a car" for n in range(1, 31)))
    site.set_up()

    for mode in ("semantic", "hybrid"):
        whole = [match.id for match in site.grep("vehicle word", mode, limit=30).matches]
        pages, cursor = [], None
        while len(pages) < len(whole):
            page = site.grep("vehicle word", mode, limit=7, cursor=cursor)
            pages += [match.id for match in page.matches]
            cursor = page.cursor

        assert pages == whole and len(set(whole)) == 30


@pytest.mark.parametrize("few_passages", [20_000, 0])
def test_every_filter_holds_by_comparing_all_and_by_the_index(site, monkeypatch, few_passages):
    monkeypatch.setattr("retrieval.search.semantic_search.FEW_PASSAGES", few_passages)
    one = a_conversation(*SAID, "My car is red").conversation_id
    other = a_conversation("A vehicle of another session").conversation_id
    a_conversation("A vehicle of other people", workspace=a_workspace("others"))
    site.set_up()

    assert site.found("automobile", conversation_id=one, limit=2) in ([1, 5], [5, 1])
    assert site.found("automobile", conversation_id=one, roles=["assistant"], limit=1) == [2]
    assert site.found("automobile", conversation_id=one, from_seq=2, limit=1) == [5]
    assert {each.conversation_id for each in site.grep("automobile").matches} == {one, other}
    assert {each.conversation_id for each in site.grep("automobile", conversation_ids=[other]).matches} == {other}
    with pytest.raises(Invalid, match="sort"):
        site.grep("automobile", sort="recency")
    with pytest.raises(Invalid, match="mode"):
        site.grep("automobile", scope="summaries")


def test_a_small_workspace_is_searched_as_well_as_a_large_one_beside_it(site, hasty_index, monkeypatch):
    monkeypatch.setattr("retrieval.search.semantic_search.FEW_PASSAGES", 100)
    site.server.dimension = 16
    one = a_conversation("Dinner is at eight").conversation_id
    site.set_up()
    with_passages_beside("An automobile", 800, dimension=16)

    found = site.grep("automobile")

    assert [each.conversation_id for each in found.matches] == [one]
    assert found.note is None


def test_where_the_index_gives_up_too_early_a_note_says_so(site, hasty_index, monkeypatch):
    monkeypatch.setattr("retrieval.search.semantic_search.FEW_PASSAGES", 0)
    monkeypatch.setattr("retrieval.search.semantic_search.PASSAGES", 1)
    monkeypatch.setattr("retrieval.search.semantic_search.MOST_SCANNED", 1)
    site.server.dimension = 16
    a_conversation("Dinner is at eight")
    site.set_up()

    alone = {mode: site.grep("automobile", mode) for mode in ("semantic", "hybrid")}
    with_passages_beside("An automobile", 800, dimension=16)
    found = {mode: site.grep("automobile", mode) for mode in ("semantic", "hybrid")}

    assert [len(each.matches) for each in alone.values()] == [1, 1]
    assert {each.note for each in alone.values()} == {None}
    assert "name conversations" in found["semantic"].note and "name conversations" in found["hybrid"].note


def test_what_an_agent_did_with_lcm_itself_is_not_found_by_meaning(site):
    conversation = a_conversation("My car was fixed").conversation_id
    asked = [a_tool_call("c1", "lcm_grep", query="vehicle"), a_tool_result("c1", "vehicle vehicle")]
    say(conversation, *asked)
    site.set_up()

    assert site.found("vehicle", conversation_id=conversation) == [1]


def test_new_messages_are_embedded_with_the_next_sweep_and_a_description_says_how_many_are(site):
    conversation = a_conversation(*SAID).conversation_id
    site.set_up()
    say(conversation, "A vehicle")
    describe = RetrievalEngine.from_settings(Scope(a_workspace().pk)).describe

    before = describe(id=f"conv_{conversation}").embedded_messages
    site.embed()

    assert (before, describe(id=f"conv_{conversation}").embedded_messages) == (4, 5)
    assert site.found("automobile", limit=1) in ([1], [5])


def test_a_context_holds_what_a_question_means(site):
    filler = [f"Something else entirely, number {n}, and much of it " * 3 for n in range(60)]
    conversation = a_conversation("My car was mended by Ann", *filler).conversation_id
    site.set_up()
    ask = {"conversation_id": conversation, "budget": 600, "query": "Who repaired the automobile?"}

    context = ContextAssembler.from_settings(Scope(a_workspace().pk)).assemble(**ask)
    turn = Turns.from_settings(Scope(a_workspace().pk)).turn(**ask, messages=[NewMessage(Role.USER, "So?")])

    assert 1 in [item.first_seq for item in context.items]
    assert 1 in [item.first_seq for item in turn.context.items]


def test_a_session_recalls_those_before_it_by_what_they_mean(site):
    project = a_project()
    sessions = [
        a_session(project, "The car was fixed at last"),
        *(a_session(project, "Dinner at eight") for _ in "1234"),
    ]
    summaries = [a_session_summary(each.conversation_id, "Much was done that day. " * 10) for each in sessions]
    site.set_up()
    ask = {"project": project.name, "budget": 520, "share": 1, "query": "automobile"}

    by_meaning = ContextAssembler.from_settings(Scope(a_workspace().pk)).recall(**ask)
    site.configure(url="", model="")
    by_words = ContextAssembler.from_settings(Scope(a_workspace().pk)).recall(**ask)

    assert summaries[0].pk in by_meaning.past_ids
    assert by_words.past_ids and summaries[0].pk not in by_words.past_ids


def test_without_an_embedder_nothing_is_asked_of_the_database(site):
    conversation = a_conversation(*SAID).conversation_id
    engine = RetrievalEngine.from_settings(Scope(a_workspace().pk))
    site.configure(url="", model="")

    with counted_statements() as sent:
        EmbeddingWorker.from_settings().sweep()
        engine.grep(query="car")
        engine.describe(id=f"conv_{conversation}")
        ContextAssembler.from_settings(Scope(a_workspace().pk)).assemble(conversation_id=conversation, query="car")

    assert not [statement for statement in sent if "embed" in statement]
