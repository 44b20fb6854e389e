"""What a search reads first and keeps of it, and how it is called off."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.db import OperationalError, connection, transaction

from conversations.errors import Unavailable
from conversations.scope import Scope
from retrieval.assembler import ContextAssembler
from retrieval.history.project_history import ProjectHistory
from retrieval.search import prepare as preparing
from retrieval.search.prepare import Prepared, bounded, prepare
from retrieval.search.query.parser import parse
from retrieval.search.request import SearchRequest
from retrieval.types import GrepScope
from tests.factories import a_conversation, a_workspace
from tests.statements import analyze, counted_statements, value

OF_EVERY_KIND = 'red "wooden boat" -sail -"a mast" src/getBoat.ts:42 数据库 café the win'


@pytest.fixture(autouse=True)
def nothing_cached(monkeypatch):
    monkeypatch.setattr(preparing, "_lexed", {})
    monkeypatch.setattr(preparing, "_SETTLED_SECONDS", 0)


def prepared(query: str) -> tuple[Prepared, list[str]]:
    """A search for these words, and the statements sent for it."""
    with counted_statements() as sent:
        search = prepare(SearchRequest(query, scope=GrepScope.ALL), Scope(a_workspace().pk), (parse(query),))
    return search, [*sent]


def frequencies(query: str) -> tuple[Mapping[str, float], bool]:
    search, sent = prepared(query)
    return search.frequencies, any("pg_stats" in statement for statement in sent)


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
    assert preparing._counted == {}

    monkeypatch.setattr(preparing, "_SETTLED_SECONDS", 60)
    a_conversation(*["a red boat"] * 10)
    analyze()

    assert [frequencies("boat")[1], frequencies("boat")[1]] == [True, True]


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


def too_slow() -> Unavailable:
    return Unavailable("Too slow.", code="search_timeout")


@pytest.mark.django_db
def test_what_takes_too_long_is_refused_and_the_connection_goes_on():
    with pytest.raises(Unavailable) as refusal, bounded(milliseconds=50, refusal=too_slow):
        value("SELECT pg_sleep(30)")

    assert refusal.value.code == "search_timeout"
    assert value("SELECT 1") == 1
    assert value("SELECT current_setting('statement_timeout')") == "0"


@pytest.mark.django_db
def test_later_statements_get_what_is_left():
    with pytest.raises(Unavailable), bounded(milliseconds=300, refusal=too_slow) as deadline:
        value("SELECT pg_sleep(0.2)")
        deadline.impose()
        value("SELECT pg_sleep(0.25)")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ProjectHistory.from_settings().grep_sessions(query="port"),
        lambda: ProjectHistory.from_settings().timeline(),
        lambda: ContextAssembler.from_settings().recall(query="port"),
    ],
    ids=["grep", "timeline", "recall"],
)
def test_a_search_through_all_sessions_ends_in_time(committed_db, settings, ask):
    settings.LCM = {"search_timeout_ms": 100}
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE session_summaries RENAME TO kept")
        cursor.execute("CREATE VIEW session_summaries AS SELECT kept.* FROM kept, pg_sleep(30)")
    try:
        with pytest.raises(OperationalError, match="statement timeout"):
            ask()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP VIEW session_summaries")
            cursor.execute("ALTER TABLE kept RENAME TO session_summaries")
