"""Forms of a word that stemming does not bring together."""

from __future__ import annotations

import pytest

from conversations.sql import rows
from retrieval.search.query import word_forms
from retrieval.search.query.word_forms import other_forms


@pytest.mark.parametrize(
    ("word", "others"),
    [
        *((form, ("won",)) for form in ("win", "wins", "winning", "Win?", '"win"')),
        ("took", ("take", "taken")),
        ("children", ("child",)),
        *((form, ("failure",)) for form in ("fail", "fails", "failed", "failing")),
        ("failures", ("fail",)),
        ("lose", ("lost", "loss")),
        ("paint", ()),
        ("left", ()),
    ],
)
def test_a_word_leads_to_its_forms_that_look_different(word, others):
    assert other_forms(word) == others


@pytest.mark.django_db
def test_no_form_is_listed_that_stemming_knows():
    known = word_forms.known()

    lexed = dict(rows("SELECT word, to_tsvector('english', word)::text FROM unnest(%s::text[]) AS word", [[*known]]))

    for word, others in known.items():
        assert len({lexed[form] for form in (word, *others)}) == 1 + len(others), word
