"""The optional index of trigrams: built, used and dropped where the server has pg_trgm, refused clearly where not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from conversations.content.tokens import TokenEstimator
from conversations.errors import Conflict
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from retrieval.engine import RetrievalEngine
from retrieval.policy import RetrievalPolicy
from retrieval.search.patterns import trigrams
from retrieval.search.patterns.trigrams import INDEX, State
from tests.factories import a_conversation, a_store, a_workspace
from tests.statements import analyze, execute

ON = RetrievalPolicy(trigram_index=True)


def has_pg_trgm() -> bool:
    return trigrams.status(ON).available


@pytest.fixture
def index(committed_db) -> Iterator[None]:
    if not has_pg_trgm():
        pytest.skip("this PostgreSQL has no pg_trgm, as the one that LCM brings along")
    trigrams.build(ON)
    yield
    trigrams.drop(ON)


def seqs(pattern: str, policy: RetrievalPolicy = ON, **asked) -> list[int]:
    engine = RetrievalEngine(policy=policy, tokens=TokenEstimator("estimate"), scope=Scope(a_workspace().pk))
    return [match.first_seq for match in engine.grep(query=pattern, mode="regex", **asked).matches]


@pytest.mark.django_db
def test_without_pg_trgm_the_index_is_refused_and_the_refusal_says_why():
    if has_pg_trgm():
        pytest.skip("this PostgreSQL has pg_trgm")

    with pytest.raises(Conflict, match="no contrib modules") as refusal:
        trigrams.build(ON)

    assert refusal.value.code == "no_pg_trgm"
    assert trigrams.status(ON).state is State.ABSENT


@pytest.mark.django_db
def test_where_there_is_no_index_a_search_that_might_use_it_goes_on_without():
    conversation = a_conversation("port 5432", "nothing", "port 5433")

    assert seqs(r"port \d+", conversation_id=conversation.conversation_id) == [3, 1]


@pytest.mark.django_db
def test_inside_a_transaction_nothing_is_built_or_dropped():
    with pytest.raises(Conflict, match=r"transaction|pg_trgm"):
        trigrams.build(ON)
    with pytest.raises(Conflict, match="transaction"):
        trigrams.drop(ON)


def test_with_the_index_a_rare_word_is_found_through_it_and_the_answers_are_the_same(index):
    conversation = a_conversation("marker-1a2b at first")
    store, number = a_store(), conversation.conversation_id
    for start in range(0, 8000, 1000):
        said = [NewMessage(Role.USER, f"hay number {start + each} in the barn") for each in range(1000)]
        store.append_messages(conversation_id=number, messages=said)
    analyze()
    scans = f"SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = '{INDEX}'"

    def scanned() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")
            cursor.execute(scans)
            return int(cursor.fetchone()[0])

    before = scanned()
    found = seqs("marker-[0-9a-f]+", conversation_id=number)

    assert trigrams.status(ON).state is State.BUILT
    assert found == seqs("marker-[0-9a-f]+", RetrievalPolicy(), conversation_id=number) == [1]
    assert seqs("number [0-9]+ in", conversation_id=number, limit=3) == [8001, 8000, 7999]
    assert scanned() > before


def test_an_index_whose_making_was_broken_off_is_made_again(index):
    execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", INDEX)
    assert trigrams.status(ON).state is State.INCOMPLETE

    assert trigrams.build(ON).state is State.BUILT
