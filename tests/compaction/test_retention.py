from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summarizing.retention_score import retention
from tests.compaction.summarizing import any_text

SOURCE = "Anna asked Ben to move src/ledger.py from port 5433 to port 6432; E1101 and ValueError came up."


def test_what_says_everything_keeps_everything_and_what_says_nothing_nothing():
    assert retention([SOURCE], SOURCE) == 1.0
    assert retention([SOURCE], "Something was moved.") == 0.0


FACTS = """src/export/rows.py https://example.org/issues/12 getSummary ORDER_BY E1101 CVE-2026-1234 ValueError
5433 1,250.75 2026-03-07 12:30 Lisbon Ångström Москве"""


def test_a_fact_that_is_lost_costs_and_one_that_is_kept_does_not():
    for fact in FACTS.split():
        source = f"they wrote {fact} down near config/base.yml"

        assert retention([source], f"in config/base.yml there was {fact} too") == 1.0
        assert retention([source], "in config/base.yml there was something") < 1.0, fact


@pytest.mark.sampled(9)
@pytest.mark.parametrize("quoted", ['"{}"', "(see {}).", "`{}`,", "['{}']", '{{"at":"{}"}}', "«{}»", "\n{}\n\n"])
@pytest.mark.parametrize("fact", ["src/export/rows.py", "getSummary", "E1101", "5433", "2026-03-07"])
def test_a_fact_counts_whatever_quotes_it_and_the_words_around_it_do_not(quoted, fact):
    source = f'they "wrote" (nearly all) of {quoted.format(fact)} down'

    assert retention([source], f"of {fact} too") == 1.0
    assert retention([source], "they wrote all down") == 0.0


def test_a_number_is_the_same_with_and_without_its_commas():
    assert retention(["it cost 1,250,000 in all"], "It cost 1250000.") == 1.0


def test_a_number_inside_another_is_not_that_number():
    assert retention(["it was 543 there"], "It was 5433, or 1543, or v543x.") == 0.0


@pytest.mark.parametrize(
    "text", ["", "they went home and it was nice", "Thanks a lot! That is Great.", "3 of 4", "他们去了那里"]
)
def test_where_nothing_must_be_kept_there_is_no_figure(text):
    assert retention([text], "They went.") is None


def test_a_path_weighs_more_than_a_number():
    source = "the tests in tests/ledger/rows.py ran 731 times"

    assert retention([source], "tests/ledger/rows.py") > retention([source], "731") > 0


def test_what_many_messages_speak_of_weighs_more_than_what_one_lists():
    sources = ["we change src/a.py", "src/a.py fails", "now src/a.py works", "seen once: src/b.py"]

    assert retention(sources, "src/a.py was changed") > retention(sources, "src/b.py was seen")


@given(st.lists(any_text, max_size=4), any_text)
def test_it_is_a_share_and_the_whole_keeps_the_whole(sources, summary):
    share = retention(sources, summary)

    assert share is None or 0.0 <= share <= 1.0
    assert retention(sources, "\n".join(sources)) in (None, 1.0)
