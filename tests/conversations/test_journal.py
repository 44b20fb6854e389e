"""The journal of a host's raw entries: in order, once each, and as they came."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.errors import Conflict, Invalid, NotFound
from conversations.scope import Scope
from conversations.store.journal import Journal
from integrity.checker import IntegrityChecker
from integrity.retention.erasure import Erasures
from tests.conversations.strategies import json_of, texts
from tests.factories import a_conversation, a_workspace
from tests.integrity.breaking import breaking
from tests.integrity.erasing import erased
from tests.round_trip import assert_ledgers_survive

pytestmark = pytest.mark.django_db


def journal() -> Journal:
    return Journal.from_settings(Scope(a_workspace().pk))


def entries_of(conversation_id: int, **where: object) -> list[object]:
    found = journal().list_entries(conversation_id=conversation_id, limit=1000, **where)
    return [each.entry for each in found]


def found(conversation_id: int) -> set[str]:
    report = IntegrityChecker.from_settings(Scope(a_workspace().pk)).run(conversation_id=conversation_id)
    return {result.code for result in report.invariants if result.count}


@pytest.fixture
def conversation_id() -> int:
    return a_conversation("one", "two").conversation_id


@given(entries=st.lists(st.dictionaries(texts, json_of(texts), max_size=4), min_size=1, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_entries_come_back_deep_equal_and_in_order(conversation_id, entries):
    before = entries_of(conversation_id)
    entries = [{name: value for name, value in each.items() if name != "uuid"} for each in entries]

    journal().append_entries(conversation_id=conversation_id, entries=entries)

    assert entries_of(conversation_id) == before + entries


def test_an_entry_is_kept_once_for_its_uuid_in_its_subpath(conversation_id):
    first = {"uuid": "a", "n": 1.50, "deep": {"b": None, "a": "\x00\ud800"}}

    journal().append_entries(conversation_id=conversation_id, entries=[first, {"n": 2}])
    again = journal().append_entries(
        conversation_id=conversation_id,
        entries=[
            {"deep": {"a": "\x00\ud800", "b": None}, "uuid": "a", "n": 1.5},
            {"n": 2},
            {"uuid": "b"},
            {"uuid": "b"},
        ],
    )
    journal().append_entries(conversation_id=conversation_id, entries=[first], subpath="subagents/agent-1")

    assert (again.kept, again.repeated, again.last_position) == (2, 2, 4)
    assert entries_of(conversation_id) == [first, {"n": 2}, {"n": 2}, {"uuid": "b"}]
    assert entries_of(conversation_id, subpath="subagents/agent-1") == [first]
    shown = journal().list_subpaths(conversation_id=conversation_id)
    assert [(each.subpath, each.entry_count) for each in shown] == [("", 4), ("subagents/agent-1", 1)]
    assert found(conversation_id) == set()


def test_another_entry_under_the_same_uuid_is_a_conflict_and_nothing_is_kept(conversation_id):
    journal().append_entries(conversation_id=conversation_id, entries=[{"uuid": "a"}])

    with pytest.raises(Conflict):
        journal().append_entries(conversation_id=conversation_id, entries=[{"n": 1}, {"uuid": "a", "n": 2}])

    assert entries_of(conversation_id) == [{"uuid": "a"}]


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"entries": [{}] * 1001}, Invalid),
        ({"entries": [{"uuid": "\x00"}]}, Invalid),
        ({"entries": [{"n": float("nan")}]}, Invalid),
        ({"entries": [{}], "subpath": "\x00"}, Invalid),
        ({"entries": [{}], "conversation_id": 10**9}, NotFound),
    ],
)
def test_what_cannot_be_kept_is_refused(conversation_id, given, refusal):
    with pytest.raises(refusal):
        journal().append_entries(**{"conversation_id": conversation_id, **given})

    assert entries_of(conversation_id) == []


def test_a_page_of_large_entries_ends_early_and_leads_on(conversation_id):
    large = [{"n": n, "text": "x" * 3_000_000} for n in range(4)]
    journal().append_entries(conversation_id=conversation_id, entries=large)

    first = journal().list_entries(conversation_id=conversation_id)
    rest = journal().list_entries(conversation_id=conversation_id, after_position=first[-1].position)

    assert [each.position for each in [*first, *rest]] == [1, 2, 3, 4]
    assert (first.more, rest.more) == (True, False)


def test_a_ledger_carries_the_journal(conversation_id):
    journal().append_entries(conversation_id=conversation_id, entries=[{"b": "\ud800", "a": 1.5}, {"uuid": "a"}])
    journal().append_entries(conversation_id=conversation_id, entries=[{"é": [1, {}]}], subpath="B/ä")
    journal().append_entries(conversation_id=conversation_id, entries=[{}], subpath="a")

    assert_ledgers_survive([conversation_id])


def test_an_erasure_of_the_whole_conversation_takes_the_entries(conversation_id):
    journal().append_entries(conversation_id=conversation_id, entries=[{"uuid": "a", "secret": "boats"}])

    preview, _ = erased(Erasures.from_settings(Scope(a_workspace().pk, actor="an admin")), conversation_id)

    assert "entry of the host's journal" in str(preview)
    [kept] = journal().list_entries(conversation_id=conversation_id)
    assert (kept.entry, kept.uuid, kept.position) == (None, "a", 1)
    assert found(conversation_id) == set()
    assert_ledgers_survive([conversation_id])


BREAKS = {
    "an altered entry": ("""UPDATE journal_entries SET entry = '{"uuid":"a","n":2}' WHERE position = 1""", set()),
    "a removed entry": ("DELETE FROM journal_entries WHERE position = 2", set()),
    "an entry in another place": (
        "UPDATE journal_entries SET position = 9 WHERE position = 2",
        {"rows_match_their_seals"},
    ),
    "a miscounted journal": ("UPDATE conversations SET journal_size = 0", set()),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_journal_is_found(conversation_id, name):
    journal().append_entries(conversation_id=conversation_id, entries=[{"uuid": "a", "n": 1}, {"n": 2}])
    statement, more = BREAKS[name]

    assert breaking(statement) == 1

    assert found(conversation_id) == {"journals_are_complete"} | more
