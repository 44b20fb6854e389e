"""Forms of a word that stemming does not bring together."""

from __future__ import annotations

import pytest

from conversations.sql import rows
from retrieval.search.query import word_forms
from retrieval.search.query.word_forms import other_forms


@pytest.mark.parametrize("word", ["win", "wins", "winning", "Win?", '"win"'])
def test_each_form_of_a_verb_leads_to_those_that_look_different(word):
    assert other_forms(word) == ("won",)


def test_an_irregular_form_leads_to_the_verb_and_to_the_other_irregular_ones():
    assert other_forms("took") == ("take", "taken")
    assert other_forms("children") == ("child",)


@pytest.mark.parametrize("word", ["fail", "fails", "failed", "failing"])
def test_what_is_done_leads_to_how_it_is_called(word):
    assert other_forms(word) == ("failure",)
    assert other_forms("failures") == ("fail",)


def test_a_word_of_a_family_keeps_its_irregular_forms():
    assert other_forms("lose") == ("lost", "loss")


def test_a_regular_word_has_no_other_forms():
    assert other_forms("paint") == ()
    assert other_forms("left") == ()


@pytest.mark.django_db
def test_no_form_is_listed_that_stemming_knows():
    known = word_forms.known()

    lexed = dict(rows("SELECT word, to_tsvector('english', word)::text FROM unnest(%s::text[]) AS word", [[*known]]))

    for word, others in known.items():
        assert len({lexed[form] for form in (word, *others)}) == 1 + len(others), word
