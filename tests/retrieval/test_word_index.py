"""What the process caches of words, and when it reads that again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.db import connection, transaction

from conversations.scope import Scope
from retrieval.engine import RetrievalEngine
from retrieval.search import prepare as word_index
from retrieval.search.prepare import Prepared, prepare
from retrieval.search.query.parser import parse
from retrieval.search.request import SearchRequest
from retrieval.types import GrepScope
from tests.factories import a_conversation, a_workspace
from tests.statements import counted_statements

OF_EVERY_KIND = 'red "wooden boat" -sail -"a mast" src/getBoat.ts:42 数据库 café the win'


@pytest.fixture(autouse=True)
def nothing_cached(monkeypatch):
    monkeypatch.setattr(word_index, "_lexed", {})
    monkeypatch.setattr(word_index, "_counted", [])
    monkeypatch.setattr(word_index, "_SETTLED_SECONDS", 0)


def prepared(query: str) -> tuple[Prepared, list[str]]:
    """A search for these words, and the statements sent for it."""
    with counted_statements() as sent:
        search = prepare(SearchRequest(query, scope=GrepScope.ALL), Scope(a_workspace().pk), (parse(query),))
    return search, [*sent]


def frequencies(query: str) -> tuple[Mapping[str, float], bool]:
    search, sent = prepared(query)
    return search.frequencies, any("pg_stats" in statement for statement in sent)


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE messages")


def test_counts_are_read_once_until_there_are_others(committed_db):
    a_conversation(*["a red boat"] * 10)
    analyze()

    first, is_read_first = frequencies("boat")
    second, is_read_again = frequencies("red boat")
    a_conversation(*["a green house"] * 10)
    analyze()
    third, is_read_anew = frequencies("boat")

    assert (is_read_first, is_read_again, is_read_anew) == (True, False, True)
    assert first == second
    assert (first["boat"], third["boat"]) == (1, 0.5)


def test_counts_that_may_not_be_committed_are_not_cached(committed_db, monkeypatch):
    with transaction.atomic():
        a_conversation(*["a red boat"] * 10)
        analyze()
        assert frequencies("boat")[0]["boat"] == 1
        transaction.set_rollback(True)
    assert word_index._counted == []

    monkeypatch.setattr(word_index, "_SETTLED_SECONDS", 60)
    a_conversation(*["a red boat"] * 10)
    analyze()

    assert [frequencies("boat")[1], frequencies("boat")[1]] == [True, True]


def test_counts_are_read_again_after_some_minutes(committed_db, monkeypatch):
    a_conversation(*["a red boat"] * 10)
    analyze()
    frequencies("boat")

    monkeypatch.setattr(word_index, "CACHED_SECONDS", 0)

    assert frequencies("boat")[1]


def test_before_anything_was_counted_a_search_finds_all_the_same(committed_db):
    a_conversation("a red boat")

    found = RetrievalEngine.from_settings(Scope(a_workspace().pk)).grep(query="boat")

    assert len(found.matches) == 1


def is_lexed(sent: list[str]) -> bool:
    return any("to_tsvector" in statement for statement in sent)


@pytest.mark.django_db
def test_terms_of_every_kind_are_lexed_once():
    first, sent_first = prepared(OF_EVERY_KIND)
    again, sent_again = prepared(OF_EVERY_KIND)
    _, sent_for_another = prepared("red -café")

    assert len(first.lexed) == 10
    assert again.lexed == first.lexed
    # An excluded word has a query of its own.
    assert [is_lexed(sent) for sent in (sent_first, sent_again, sent_for_another)] == [True, False, True]


@pytest.mark.django_db
def test_what_is_cached_is_bounded_in_number_and_length(monkeypatch):
    monkeypatch.setattr(word_index, "_MOST_CACHED", 3)
    sizes = []

    for query in ("x" * 101, "one two three", "four"):
        prepared(query)
        sizes.append(len(word_index._lexed))

    assert sizes == [0, 3, 1]
