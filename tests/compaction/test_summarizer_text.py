from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summarizing.extractive.clean_text import LONGEST_READ, clean, fit
from compaction.summarizing.extractive.terms import stem, terms_of
from tests.compaction.summarizing import COUNTERS, any_text


def test_colours_and_controls_are_cleaned_away():
    assert clean("\x1b[31mred\x1b[0m\r\nnext\0line\ud800.") == "red\nnext line ."


def test_of_a_monster_the_beginning_and_the_end_are_read():
    text = clean("begin " + "x" * 3 * LONGEST_READ + " end")

    assert len(text) <= LONGEST_READ + 1
    assert text.startswith("begin ")
    assert text.endswith(" end")


@given(text=any_text, limit=st.integers(0, 20), count=st.sampled_from(list(COUNTERS.values())))
def test_what_fits_is_a_beginning_within_the_limit(text, limit, count):
    fitting = fit(text, limit, count)

    assert text.startswith(fitting)
    assert count(fitting) <= limit


def test_what_fits_is_as_long_as_it_can_be():
    assert fit("one two three four", 3, lambda text: len(text.split())).split() == ["one", "two", "three"]


@pytest.mark.parametrize(
    "words", [("run", "runs", "running"), ("city", "cities"), ("make", "makes", "making"), ("plan", "planned", "plans")]
)
def test_forms_of_a_word_are_one_term(words):
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize("word", ["address", "bus", "this", "bring", "need", "it", "os"])
def test_what_only_looks_like_an_ending_stays(word):
    assert stem(word) == word


def test_pairs_of_characters_are_the_terms_of_chinese():
    assert terms_of("搬到上海 port") == {"搬到", "到上", "上海", "port"}


def test_words_that_only_join_others_are_no_terms_but_denials_are():
    assert terms_of("It is not in the house") == {"not", "hous"}
