"""Outside agents claim items of agentic runs, answer under their fence, die, and come back late."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from conversations.errors import Conflict, Invalid
from conversations.models import Message
from conversations.scope import Scope
from conversations.store.pages import MOST_PAGE_BYTES
from conversations.work.queue import LeaseLost
from retrieval.delegation.grants import Grants
from retrieval.delegation.types import GrantRevoked
from retrieval.map.agentic_claims import AgenticClaims
from retrieval.map.map_operator import MapOperator
from retrieval.map.models import MapEvent, MapItem
from retrieval.map.types import MapKind
from tests.factories import a_conversation, a_workspace
from tests.integrity.breaking import checked
from tests.maps import SCHEMA

pytestmark = pytest.mark.django_db

GOOD = {"label": "a boat"}


def operator() -> MapOperator:
    return MapOperator.from_settings(Scope(a_workspace().pk, actor="the person"))


def agent(name: str = "key 7") -> AgenticClaims:
    return AgenticClaims.from_settings(Scope(a_workspace().pk, actor=name))


def a_run(count: int = 3, **options: Any) -> Any:
    given = {
        "prompt": "Label {{item}}.",
        "items": [{"n": n} for n in range(1, count + 1)],
        "conversation_id": a_conversation("There is much to label.").conversation_id,
        "retain": "the final word",
    }
    return operator().submit(kind=MapKind.AGENTIC, output_schema=SCHEMA, **{**given, **options})


def events(run_id: str) -> list[tuple[str, int | None]]:
    return list(MapEvent.objects.filter(run_id=run_id).order_by("seq").values_list("event", "position"))


def lease_ends(item_id: int) -> None:
    MapItem.objects.filter(pk=item_id).update(leased_until=Now() - timedelta(seconds=1))


def test_a_claim_gives_items_in_order_with_prompt_schema_and_terms():
    run = a_run(3)

    first = agent().claim(run_id=run.run_id, worker="one", count=2)
    second = agent().claim(run_id=run.run_id, worker="two", count=2)

    assert [item.position for item in (*first.items, *second.items)] == [1, 2, 3]
    assert first.items[0].prompt == 'Label {"n":1}.'
    assert first.output_schema == SCHEMA
    assert (first.terms.retain, first.terms.read_only, first.terms.grant) == ("the final word", True, None)
    assert "cannot enforce" in first.terms.note
    assert second.open_items == 3
    assert agent().claim(run_id=run.run_id, worker="three").items == ()


def test_an_agent_that_died_loses_its_item_and_its_late_answer_is_refused_by_its_fence():
    run = a_run(1)
    [dead] = agent("key 1").claim(run_id=run.run_id, worker="dead", lease_s=1).items
    assert agent("key 2").claim(run_id=run.run_id, worker="eager").items == ()
    lease_ends(dead.item_id)

    [taken] = agent("key 2").claim(run_id=run.run_id, worker="heir").items
    for late in (
        lambda: agent("key 1").heartbeat(item_id=dead.item_id, fence=dead.fence),
        lambda: agent("key 1").complete(item_id=dead.item_id, fence=dead.fence, output={"label": "late"}),
        lambda: agent("key 1").complete(item_id=dead.item_id, fence=dead.fence, error="gave up"),
        lambda: agent("key 1").release(item_id=dead.item_id, fence=dead.fence),
    ):
        with pytest.raises(LeaseLost):
            late()
    agent("key 2").complete(item_id=taken.item_id, fence=taken.fence, output=GOOD)
    with pytest.raises(LeaseLost):
        agent("key 1").complete(item_id=dead.item_id, fence=dead.fence, output={"label": "later still"})

    assert (taken.item_id, taken.fence) == (dead.item_id, dead.fence + 1)
    assert events(run.run_id)[2:] == [("claimed", 1), ("claimed", 1), ("completed", 1), ("finished", None)]
    assert MapItem.objects.get(pk=dead.item_id).output == '{"label":"a boat"}'
    assert checked() == {}


def test_a_heartbeat_keeps_an_item_and_an_answer_after_the_lease_is_taken_while_nobody_else_has_it():
    run = a_run(1)
    [item] = agent().claim(run_id=run.run_id, worker="one", lease_s=1).items

    held = agent().heartbeat(item_id=item.item_id, fence=item.fence, lease_s=600)
    meanwhile = agent().claim(run_id=run.run_id, worker="two").items
    lease_ends(item.item_id)

    assert held.leased_until > item.leased_until + timedelta(seconds=500)
    assert meanwhile == ()
    assert agent().complete(item_id=item.item_id, fence=item.fence, output=GOOD).state == "done"


def test_the_same_completion_twice_is_one_and_another_one_is_refused():
    run = a_run(1)
    [item] = agent().claim(run_id=run.run_id, worker="one").items
    answer = {"item_id": item.item_id, "fence": item.fence}

    with pytest.raises(Invalid):
        agent().complete(**answer, output=GOOD, error="no")
    first = agent().complete(**answer, output=GOOD)
    again = agent().complete(**answer, output=GOOD)

    assert (first.repeated, again.repeated) == (False, True)
    for other in ({"output": {"label": "a ship"}}, {"error": "on second thoughts"}):
        with pytest.raises(Conflict):
            agent().complete(**answer, **other)
    assert [event for event, _ in events(run.run_id)].count("completed") == 1


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ({"label": 7}, "$.label: 7 is not of type 'string'"),
        ({"label": json.loads("[" * 200 + "]" * 200)}, "$: the output is more than 100 levels deep"),
        ({"label": "x" * 256_000}, "$: the output has more than 256,000 characters"),
    ],
    ids=["type", "depth", "length"],
)
def test_an_invalid_output_is_refused_with_its_errors_and_counts_as_an_attempt(output, error):
    run = a_run(1, max_attempts=3)
    [item] = agent().claim(run_id=run.run_id, worker="one").items

    with pytest.raises(Invalid) as refused:
        agent().complete(item_id=item.item_id, fence=item.fence, output=output)
    again = agent().claim(run_id=run.run_id, worker="two").items[0]

    assert refused.value.code == "output_invalid"
    assert refused.value.context["errors"] == {"output": [error]}
    assert refused.value.context["attempts_left"] == 2
    assert again.refused_answers == 1
    assert error in again.validation_errors
    assert agent().complete(item_id=item.item_id, fence=again.fence, output=GOOD).state == "done"


def test_an_output_can_be_corrected_under_the_same_fence():
    run = a_run(1)
    [item] = agent().claim(run_id=run.run_id, worker="one").items

    with pytest.raises(Invalid):
        agent().complete(item_id=item.item_id, fence=item.fence, output=[])

    assert agent().complete(item_id=item.item_id, fence=item.fence, output=GOOD).state == "done"


@pytest.mark.parametrize("answer", [{"output": None}, {"error": "I cannot."}], ids=["invalid", "error"])
def test_after_the_last_attempt_an_item_fails_and_can_be_retried(answer):
    run = a_run(1, max_attempts=2)
    for _ in range(2):
        [item] = agent().claim(run_id=run.run_id, worker="one").items
        with pytest.raises(Invalid) if "output" in answer else nullcontext():
            agent().complete(item_id=item.item_id, fence=item.fence, **answer)

    row = MapItem.objects.get(pk=item.item_id)
    assert (row.state, row.error_kind) == ("failed", "agent" if "error" in answer else "validation")
    assert events(run.run_id)[-2:] == [("failed", 1), ("finished", None)]
    with pytest.raises(LeaseLost):
        agent().complete(item_id=item.item_id, fence=item.fence, output=GOOD)
    operator().retry_failed(run_id=run.run_id)
    [again] = agent().claim(run_id=run.run_id, worker="two").items
    assert agent().complete(item_id=again.item_id, fence=again.fence, output=GOOD).state == "done"


def test_what_is_released_is_free_at_once_and_no_attempt():
    run = a_run(1)
    [item] = agent().claim(run_id=run.run_id, worker="one").items

    # Sent again, as after a lost response.
    for _ in range(2):
        released = agent().release(item_id=item.item_id, fence=item.fence)
    [again] = agent().claim(run_id=run.run_id, worker="two").items

    assert MapItem.objects.get().attempts == 1
    assert (released.state, released.attempts_left) == ("queued", 3)
    assert (again.item_id, again.refused_answers) == (item.item_id, 0)
    assert ("released", 1) in events(run.run_id)


def test_the_last_completion_ends_the_run_with_its_output_in_order_and_one_message():
    run = a_run(3)
    items = agent().claim(run_id=run.run_id, worker="one", count=3).items

    for item in reversed(items):
        agent().complete(item_id=item.item_id, fence=item.fence, output={"label": f"n{item.position}"})

    ended = operator().get_run(run_id=run.run_id)
    lines = [each.output for each in operator().output(run_id=run.run_id).items]
    assert (ended.state, ended.done) == ("completed", 3)
    assert lines == ['{"label":"n1"}', '{"label":"n2"}', '{"label":"n3"}']
    assert ended.output_file_id in Message.objects.order_by("seq").last().content
    with pytest.raises(Conflict):
        agent().claim(run_id=run.run_id, worker="late")


def test_no_more_items_are_out_at_once_than_the_run_allows():
    run = a_run(5, concurrency=2)

    assert len(agent().claim(run_id=run.run_id, worker="one", count=5).items) == 2
    assert agent().claim(run_id=run.run_id, worker="two", count=5).items == ()


def test_a_paused_run_gives_nothing_out_and_takes_what_is_out_and_a_cancelled_one_takes_nothing():
    run = a_run(3)
    first, second = agent().claim(run_id=run.run_id, worker="one", count=2).items
    operator().pause(run_id=run.run_id)

    assert agent().claim(run_id=run.run_id, worker="two").items == ()
    assert agent().complete(item_id=first.item_id, fence=first.fence, output=GOOD).state == "done"
    operator().cancel(run_id=run.run_id)
    with pytest.raises(LeaseLost):
        agent().complete(item_id=second.item_id, fence=second.fence, output=GOOD)
    with pytest.raises(Conflict):
        agent().claim(run_id=run.run_id, worker="two")


def test_the_runs_grant_says_what_may_be_read_and_a_revoked_one_ends_the_claims():
    grants = Grants.from_settings(Scope(a_workspace().pk))
    grant = grants.issue(
        workspace_id=a_workspace().pk, question="?", item_ids=["msg_1"], depth=1, token_cap=4000, seconds=600
    )
    run = a_run(2, grant_id=grant.grant_id, delegated_scope="labels of boats", kept_work="names of boats")

    terms = agent().claim(run_id=run.run_id, worker="one").terms
    grants.revoke_grant(grant_id=grant.grant_id)

    assert terms.grant is not None
    assert terms.grant.item_ids == ("msg_1",)
    assert (terms.delegated_scope, terms.kept_work) == ("labels of boats", "names of boats")
    with pytest.raises(GrantRevoked):
        agent().claim(run_id=run.run_id, worker="two")


def test_an_agent_whose_items_it_never_returns_fails_them_after_enough_claims():
    run = a_run(1)
    for _ in range(8):
        [item] = agent().claim(run_id=run.run_id, worker="dying").items
        lease_ends(item.item_id)

    assert agent().claim(run_id=run.run_id, worker="next").items == ()
    assert operator().get_run(run_id=run.run_id).state == "failed"
    assert checked() == {}


@pytest.mark.parametrize(
    ("prompt", "counts"),
    [("Label {{item}}, again {{item}}.", [14, 3]), ("{{item}}" * 50, [1, 1])],
    ids=["as many as fit", "each too large for a page"],
)
def test_a_claim_of_large_items_ends_by_their_bytes(prompt, counts):
    run = a_run(prompt=prompt, items=[str(n % 10) * 190_000 for n in range(17)], concurrency=17)

    claims = [agent().claim(run_id=run.run_id, worker="w", count=17).items for _ in counts]

    assert [len(items) for items in claims] == counts
    assert [item.position for items in claims for item in items] == list(range(1, sum(counts) + 1))
    for items in claims:
        assert len(items) == 1 or sum(len(each.prompt) + len(each.input) for each in items) <= MOST_PAGE_BYTES
