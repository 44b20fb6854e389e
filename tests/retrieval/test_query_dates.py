"""The dates that a question names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.query.parser import Dates, asks_when, dates_in


def asked(*, months=(), days=(), weekdays=(), years=()) -> Dates:
    return Dates(frozenset(months), frozenset(days), frozenset(weekdays), frozenset(years))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What happened on 7 May 2023?", asked(months=[5], days=[7], years=[2023])),
        ("what did we ship on the 3rd of october", asked(months=[10], days=[3])),
        ("October 13 meeting", asked(months=[10], days=[13])),
        ("logs of 2024-02-29", asked(months=[2], days=[29], years=[2024])),
        ("in Sep 2021", asked(months=[9], years=[2021])),
        ("the standup on Monday", asked(weekdays=[0])),
        ("Mondays and fridays", asked(weekdays=[0, 4])),
        ("January 2022", asked(months=[1], years=[2022])),
    ],
)
def test_days_months_weekdays_and_years_are_found(text, expected):
    assert dates_in(text) == expected


@pytest.mark.parametrize(
    "text", ["we may march on", "port 5433", "marching band", "version 3.14", "12 apples", "the summary", ""]
)
def test_words_and_numbers_that_are_no_dates_are_none(text):
    assert not dates_in(text)


def test_a_moment_answers_better_the_more_of_the_date_is_true_of_it():
    dates = dates_in("7 May 2023")

    exact, same_month, same_year, other = (
        dates.information_in(datetime(*day, tzinfo=UTC))
        for day in [(2023, 5, 7), (2023, 5, 8), (2023, 6, 7), (2022, 6, 7)]
    )

    assert exact > same_month > same_year > other == 0


@pytest.mark.parametrize(
    "text",
    [
        "When did the build break?",
        "so when was it deployed?",
        "In which year did she move?",
        "what day is the release",
        "How long ago did we talk?",
    ],
)
def test_a_question_for_a_time_is_known_as_one(text):
    assert asks_when(text)


@pytest.mark.parametrize(
    "text", ["What broke when we deployed?", "Where were you in May?", "whenever", "How long is it?"]
)
def test_a_question_that_only_speaks_of_times_is_none(text):
    assert not asks_when(text)


@given(st.text(alphabet="0123456789- MayJuneth", max_size=60), st.datetimes())
def test_no_text_and_no_moment_is_an_error(text, moment):
    assert dates_in(text).information_in(moment) >= 0
