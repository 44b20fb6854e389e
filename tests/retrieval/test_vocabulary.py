"""What words come to in the index is asked of the database once a process."""

from __future__ import annotations

import pytest

from conversations.errors import Unavailable
from conversations.scope import Scope
from retrieval import limits
from retrieval.search import vocabulary
from retrieval.search.criteria import criteria
from retrieval.search.meanings import Meanings
from retrieval.search.prepare import Opening
from retrieval.search.query.parser import Term, parse
from retrieval.types import GrepScope
from tests.factories import a_workspace

pytestmark = pytest.mark.django_db

OF_EVERY_KIND = 'red "wooden boat" -sail -"a mast" src/getBoat.ts:42 数据库 café the win'


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(vocabulary, "_KEPT", {})


def told(query: str, *, ranks: bool = True) -> tuple[Meanings, list[str]]:
    """What the words of a query mean, and about which of them the database was asked."""
    opening = Opening(criteria(where=GrepScope.ALL), Scope(a_workspace().pk), (parse(query),), ranks=ranks)
    with limits.bounded(milliseconds=5000, refusal=Unavailable("Too slow."), first=opening) as deadline:
        return opening.opened(deadline.told).meanings, [term.text for term, _ in opening.asking.new]


@pytest.mark.parametrize("ranks", [True, False])
def test_words_of_every_kind_mean_the_same_when_they_were_told_before(ranks):
    first, asked_first = told(OF_EVERY_KIND, ranks=ranks)
    again, asked_again = told(OF_EVERY_KIND, ranks=ranks)

    assert len(asked_first) == len(first.known) == 10
    assert asked_again == []
    assert again.known == first.known


def test_only_words_that_are_new_are_asked_about_wherever_they_stand():
    told("red boat")
    mixed, asked = told("house boat -sail red")

    assert asked == ["house", "sail"]
    assert {term.text: means.whole for (term, _), means in mixed.known.items()} == {
        "house": ("hous",),
        "boat": ("boat",),
        "sail": ("sail",),
        "red": ("red",),
    }


def test_a_word_that_is_to_be_left_out_is_another_question_than_the_word():
    told("red boat")
    without, asked = told("red -boat")

    assert asked == ["boat"]
    assert without.known[Term("boat"), True].query == "'boat'"


def test_a_search_that_ranks_is_told_what_another_had_no_use_for():
    told("src/getBoat.ts", ranks=False)
    ranking, asked = told("src/getBoat.ts", ranks=True)

    assert asked == ["src/getBoat.ts"]
    assert "<->" in ranking.known[Term("src/getBoat.ts"), False].in_a_row


def test_what_is_kept_is_bounded_in_number_and_length(monkeypatch):
    monkeypatch.setattr(vocabulary, "_MOST_KEPT", 3)

    told("x" * 101)
    assert not vocabulary._KEPT
    told("one two three")
    assert len(vocabulary._KEPT) == 3
    told("four")
    assert len(vocabulary._KEPT) == 1
