"""Everything about a name: what holds it, narrowed by an aspect, ranked by a question, within a cap."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.errors import Invalid, NotFound
from integrity.retention.erasure import Erasures
from retrieval.assembly.about import About
from retrieval.types import ItemKind
from tests.factories import a_conversation, a_store, a_workspace
from tests.integrity.erasing import erased
from tests.retrieval.lineages import engine
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db

FILLER = ["We talked about the weather.", "Lunch was good today."] * 4


def about(entity: str, **options: Any) -> About:
    return engine().about(entity=entity, **options)


@pytest.fixture(scope="module")
def talks(module_rows: None) -> list[int]:
    first = a_conversation(
        *FILLER,
        "predictive_scorer needs 200 training pairs before its cold start ends.",
        "predictive_scorer is written in Rust.",
        "The scorer of goals has a cold.",
        session_id="spring",
    )
    second = a_conversation(*FILLER, "We moved predictive_scorer to the new cluster.", session_id="summer")
    return [first.conversation_id, second.conversation_id]


def test_what_holds_a_name_is_given_with_ids_sessions_and_times(talks):
    summary = a_summary_of(a_store(), talks[0], seqs=range(9, 12), content="predictive_scorer: 200 pairs, Rust.")

    found = about("predictive_scorer")

    assert {(item.session_id, item.first_seq) for item in found.items} == {
        ("spring", 9), ("spring", 10), ("summer", 9),
    }  # fmt: skip
    assert {item.id for item in found.items if item.kind is ItemKind.SUMMARY} == {summary.summary_id}
    assert all("predictive_scorer" in item.text and item.is_whole and item.created_at for item in found.items)
    assert (found.more, found.narrowed, found.note) == (False, False, None)


def test_one_conversation_is_looked_at_alone_if_it_is_named(talks):
    assert [item.session_id for item in about("predictive_scorer", conversation_id=talks[1]).items] == ["summer"]


def test_an_aspect_keeps_what_speaks_of_it_and_says_so_if_nothing_does(talks):
    narrowed, unknown = about("predictive_scorer", aspect="cold start"), about("predictive_scorer", aspect="zebra")

    assert [item.first_seq for item in narrowed.items] == [9]
    assert (narrowed.narrowed, narrowed.note) == (True, None)
    assert len(unknown.items) == 3
    assert not unknown.narrowed
    assert unknown.note


def test_a_question_ranks(talks):
    for question, first in (("What is it written in: Rust?", 10), ("How many training pairs does it need?", 9)):
        found = about("predictive_scorer", question=question, conversation_id=talks[0])

        assert [item.first_seq for item in found.items][0] == first
        assert len(found.items) == 2


def test_no_more_is_given_than_there_is_room_for_and_never_nothing():
    a_conversation(*(f"boat number {n} is in the harbour. " * 60 for n in range(30)))

    found = about("harbour", max_tokens=1000)
    one = about("harbour", max_tokens=1)

    assert found.tokens <= 1000
    assert (found.more, len(one.items), one.more) == (True, 1, True)
    assert not found.items[0].is_whole


def test_what_cannot_be_searched_for_and_what_is_of_others_is_refused(talks):
    foreign = a_conversation("predictive_scorer", workspace=a_workspace("another"))

    for entity in ('""', "  "):
        with pytest.raises(Invalid):
            about(entity)
    with pytest.raises(NotFound):
        about("predictive_scorer", conversation_id=foreign.conversation_id)
    assert foreign.conversation_id not in {item.conversation_id for item in about("predictive_scorer").items}
    assert about("zeppelin").items == ()


def test_what_was_erased_is_not_given(talks):
    erased(Erasures.from_settings(), talks[1], from_seq=9, to_seq=9)

    assert "summer" not in {item.session_id for item in about("predictive_scorer").items}
