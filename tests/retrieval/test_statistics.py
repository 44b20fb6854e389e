"""What PostgreSQL has counted is kept by a process for as long as it is true of everybody."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from conversations.errors import Unavailable
from conversations.scope import Scope
from retrieval import limits
from retrieval.engine import RetrievalEngine
from retrieval.search.criteria import criteria
from retrieval.search.prepare import Opened, Opening
from retrieval.search.query import word_statistics as statistics
from retrieval.search.query.parser import parse
from retrieval.types import GrepScope
from tests.factories import a_conversation, a_workspace
from tests.statements import counted_statements


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(statistics, "_KEPT", {})
    monkeypatch.setattr(statistics, "SETTLED_SECONDS", 0)


def opened(query: str) -> tuple[Opened, bool]:
    """The opening of a search for these words, and whether it asked for counts."""
    opening = Opening(criteria(where=GrepScope.ALL), Scope(a_workspace().pk), (parse(query),))
    refusal = Unavailable("Too slow.")
    with (
        counted_statements() as sent,
        limits.bounded(milliseconds=5000, refusal=refusal, first=opening) as deadline,
    ):
        return opening.opened(deadline.told), any("pg_stats" in statement for statement in sent)


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE messages")


def test_counts_are_told_once_until_there_are_others(committed_db):
    a_conversation(*["a red boat"] * 10)
    analyze()

    first, is_told_first = opened("boat")
    second, is_told_again = opened("red boat")
    a_conversation(*["a green house"] * 10)
    analyze()
    third, is_told_anew = opened("boat")

    assert (is_told_first, is_told_again, is_told_anew) == (True, False, True)
    assert first.meanings.counted == second.meanings.counted
    assert (first.meanings.counted.frequencies["boat"], third.meanings.counted.frequencies["boat"]) == (1, 0.5)


def test_what_was_counted_just_now_is_not_kept_as_it_may_not_be_committed(committed_db, monkeypatch):
    monkeypatch.setattr(statistics, "SETTLED_SECONDS", 60)
    a_conversation(*["a red boat"] * 10)
    analyze()

    assert [opened("boat")[1], opened("boat")[1]] == [True, True]
    assert statistics.known() is None


def test_what_a_transaction_sees_that_has_written_is_not_kept(committed_db):
    with transaction.atomic():
        a_conversation(*["a red boat"] * 10)
        analyze()
        found, _ = opened("boat")
        transaction.set_rollback(True)

    assert found.meanings.counted.frequencies["boat"] == 1
    assert statistics.known() is None


def test_counts_are_told_again_after_some_minutes(committed_db, monkeypatch):
    a_conversation(*["a red boat"] * 10)
    analyze()
    opened("boat")

    monkeypatch.setattr(statistics, "KEPT_SECONDS", 0)

    assert statistics.known() is None
    assert opened("boat")[1]


def test_before_anything_was_counted_a_search_finds_all_the_same(committed_db):
    a_conversation("a red boat")

    found = RetrievalEngine.from_settings(Scope(a_workspace().pk)).grep(query="boat")

    assert len(found.matches) == 1
