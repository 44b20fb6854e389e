"""Leave to read: what it allows is counted, what it does not is refused by name, and both are listed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from compaction.rendering import QUARANTINED
from conversations.errors import Forbidden, LcmError, NotFound
from conversations.scope import Scope
from integrity.repairs.quarantines import Quarantines
from retrieval.delegation.actions import Describe, Expand, Find, More, Unknown
from retrieval.delegation.expand_query import Delegation
from retrieval.delegation.extent import Extent
from retrieval.delegation.granted import GrantedReader
from retrieval.delegation.grants import KEPT, Grants
from retrieval.delegation.types import GrantExceeded, GrantExpired, GrantRecursion, GrantRevoked, GrantState
from retrieval.engine import RetrievalEngine
from retrieval.models import Grant
from tests.factories import a_conversation, a_store, a_workspace
from tests.retrieval.lineages import message_id
from tests.summaries import a_summary_of


def scope(name: str | None = None) -> Scope:
    return Scope(a_workspace(name).pk)


def grants(name: str | None = None) -> Grants:
    return Grants(scope=scope(name))


def a_grant(*item_ids: str, token_cap: int = 4000, depth: int = 3, seconds: int = 300):
    return grants().issue(
        workspace_id=a_workspace().pk,
        question="what was the port?",
        item_ids=item_ids,
        depth=depth,
        token_cap=token_cap,
        seconds=seconds,
    )


def a_reader(grant) -> GrantedReader:
    return GrantedReader(
        engine=RetrievalEngine.from_settings(scope()),
        grants=grants(),
        grant=grant,
        extent=Extent.of(grant.item_ids, depth=grant.depth),
    )


@pytest.fixture(scope="module")
def graph(module_rows):
    """Four levels above eight messages, of which the first says which port it was; and a ninth beside them."""
    texts = ["The harbour listens on port 5433.", *(f"message {seq} about boats. " * 8 for seq in range(2, 10))]
    number = a_conversation(*texts).conversation_id
    store = a_store()
    leaf = a_summary_of(store, number, seqs=[1, 2, 3, 4], content="They set the harbour's port.")
    first = a_summary_of(store, number, summaries=[leaf], seqs=[5])
    second = a_summary_of(store, number, summaries=[first], seqs=[6])
    root = a_summary_of(store, number, summaries=[second], seqs=[7, 8])
    return {"number": number, "leaf": leaf.summary_id, "first": first.summary_id, "root": root.summary_id}


# -- what it allows


def test_what_is_read_is_counted(graph):
    grant = a_grant(graph["leaf"])
    reader = a_reader(grant)

    tokens = [reader.read(action).tokens for action in (Describe(graph["leaf"]), Find("port"), Expand(graph["leaf"]))]

    kept = grants().get_grant(grant_id=grant.grant_id)
    assert all(tokens)
    assert (kept.tokens_used, kept.reads, kept.state) == (sum(tokens), 3, GrantState.ACTIVE)


def test_a_search_finds_what_is_within_and_nothing_else(graph):
    a_conversation("Another harbour listens on port 1.")
    found = a_reader(a_grant(graph["leaf"])).read(Find("harbour port")).text
    of_a_message = a_reader(a_grant(message_id(graph["number"], 9))).read(Find("harbour port")).text

    assert message_id(graph["number"], 1) in found
    assert "port 5433" in found
    assert "Another" not in found
    assert "port 5433" not in of_a_message


def test_an_answer_larger_than_its_room_goes_on_under_a_handle(graph):
    number = a_conversation(*(f"message {seq} " * 60 for seq in range(1, 41))).conversation_id
    leaf = a_summary_of(a_store(), number, seqs=range(1, 41))
    grant = a_grant(leaf.summary_id, token_cap=100_000)
    reader = a_reader(grant)

    texts = [reader.read(Expand(leaf.summary_id, messages=True))]
    while "There is more" in texts[-1].text:
        texts.append(reader.read(More(f"c{len(texts)}")))

    assert len(texts) > 1
    assert all(each.tokens <= 2_000 for each in texts)
    whole = "".join(each.text for each in texts)
    assert all(f"[{seq}, user" in whole or f"[{seq}, assistant" in whole for seq in range(1, 41))


def test_a_message_is_read_by_its_id_unless_it_is_quarantined(graph):
    id = message_id(graph["number"], 1)
    reader = a_reader(a_grant(id))

    assert "message 7" in a_reader(a_grant(graph["root"])).read(Expand(message_id(graph["number"], 7))).text
    assert "port 5433" in reader.read(Expand(id)).text
    Quarantines.from_settings().quarantine(id=id, reason="It was altered.")
    assert QUARANTINED in (text := reader.read(Expand(id)).text) and "port" not in text


# -- what it refuses


def refusal_of(reader: GrantedReader, action) -> LcmError:
    with pytest.raises(LcmError) as refused:
        reader.read(action)
    return refused.value


@pytest.mark.parametrize(
    ("change", "kind", "state"),
    [
        ({"expires_at": timezone.now() - timedelta(minutes=1)}, GrantExpired, GrantState.EXPIRED),
        ({"revoked_at": timezone.now()}, GrantRevoked, GrantState.REVOKED),
        ({"tokens_used": 4000}, GrantExceeded, GrantState.EXCEEDED),
    ],
    ids=lambda value: str(value) if isinstance(value, GrantState) else "",
)
def test_a_grant_that_is_over_is_refused_and_listed(graph, change, kind, state):
    grant = a_grant(graph["root"])
    Grant.objects.update(**change)

    refusal = refusal_of(a_reader(grant), Expand(graph["root"]))
    with pytest.raises(kind):
        Delegation.from_settings(scope()).expand_query(question="and?", grant_id=grant.grant_id)

    assert (type(refusal), refusal.code) == (kind, f"grant_{state}")
    assert [(each.state, each.refusals) for each in grants().list_grants()] == [(state, {refusal.code: 2})]


def test_a_grant_is_revoked_once(graph):
    grant = a_grant(graph["root"])

    revoked, again = (grants().revoke_grant(grant_id=grant.grant_id) for _ in range(2))

    assert (again.state, again.revoked_at) == (GrantState.REVOKED, revoked.revoked_at)


def test_reading_ends_at_the_cap(graph):
    reader = a_reader(a_grant(graph["root"], token_cap=80))
    reader.read(Expand(graph["root"], depth=3, messages=True))

    assert refusal_of(reader, Expand(graph["root"], depth=3, messages=True)).code == "grant_exceeded"
    [kept] = grants().list_grants()
    assert kept.tokens_used <= kept.token_cap


def test_deeper_than_it_goes_is_refused_and_listed(graph):
    grant = a_grant(graph["root"], depth=2)
    reader = a_reader(grant)

    opened = reader.read(Expand(graph["root"], depth=-1, messages=True)).text
    refusal = refusal_of(reader, Expand(graph["first"], messages=True))

    assert graph["first"] in opened
    assert graph["leaf"] not in opened + reader.read(Describe(graph["first"])).text
    assert refusal.code == "grant_exceeded"
    assert refusal_of(reader, Describe(graph["leaf"])).code == "not_found"
    assert refusal_of(reader, Expand(message_id(graph["number"], 5))).code == "not_found"
    assert grants().get_grant(grant_id=grant.grant_id).refusals == {"grant_exceeded": 1, "not_found": 2}


def test_what_is_beyond_it_is_not_found_and_listed(graph):
    grant = a_grant(graph["leaf"])
    reader = a_reader(grant)

    for id in (
        graph["root"],
        message_id(graph["number"], 9),
        "sum_ffffffffffffffff",
        "msg_01",
        f"conv_{graph['number']}",
    ):
        assert isinstance(refusal_of(reader, Expand(id)), NotFound)

    assert grants().get_grant(grant_id=grant.grant_id).refusals == {"not_found": 5}


def test_another_workspace_is_told_nothing_and_its_owner_is_told_of_it(graph):
    grant = a_grant(graph["root"])
    stranger = grants("another")

    for ask in (stranger.get_grant, stranger.revoke_grant, stranger.usable):
        with pytest.raises(NotFound):
            ask(grant_id=grant.grant_id)

    kept = grants().get_grant(grant_id=grant.grant_id)
    assert (kept.state, kept.refusals) == (GrantState.ACTIVE, {"not_found": 1})


def test_whoever_reads_by_leave_delegates_no_further(graph):
    grant = a_grant(graph["root"])

    by_action = refusal_of(a_reader(grant), Unknown("expand_query"))
    with pytest.raises(GrantRecursion) as by_call:
        Delegation.from_settings(scope()).expand_query(question="and?", ids=[graph["leaf"]], grant_id=grant.grant_id)

    assert by_action.code == by_call.value.code == "grant_recursion"
    assert isinstance(by_action, Forbidden)
    assert grants().get_grant(grant_id=grant.grant_id).refusals == {"grant_recursion": 2}


def test_old_grants_are_forgotten_when_a_new_one_is_made(graph):
    old = a_grant(graph["root"])
    Grant.objects.update(expires_at=timezone.now() - KEPT - timedelta(days=1))

    new = a_grant(graph["root"])

    assert [each.grant_id for each in grants().list_grants()] == [new.grant_id]
    with pytest.raises(NotFound):
        grants().get_grant(grant_id=old.grant_id)


def test_what_an_answer_does_not_need_goes_back_even_if_it_fails(graph):
    grant = a_grant(graph["root"], token_cap=1000)

    with grants().reserve(grant_id=grant.grant_id, wanted=900) as room:
        # While an answer is under way, what is set aside for it is nobody else's.
        beside = grants().get_grant(grant_id=grant.grant_id).tokens_left
        room.used = 100
    with pytest.raises(ZeroDivisionError), grants().reserve(grant_id=grant.grant_id, wanted=900):
        _ = 1 / 0

    assert beside == 100
    assert grants().get_grant(grant_id=grant.grant_id).tokens_used == 100
