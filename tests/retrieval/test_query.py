"""What a full-text query is taken for, and the dates that it names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.query.parser import MOST_TERMS, Dates, asks_when, dates_in, interpretations, is_identifier, parse


def clauses(text: str) -> list[list[str]]:
    return [[term.text for term in clause] for clause in parse(text).clauses]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker  compose\tnetwork", [["docker"], ["compose"], ["network"]]),
        ("yes yes yes", [["yes"]]),
        ("postgres OR sqlite speed", [["postgres", "sqlite"], ["speed"]]),
        ("or docker or", [["docker"]]),
        ("a a or b", [["a"], ["a", "b"]]),
        ('“exact phrase” "port"', [["exact phrase"], ["port"]]),
        ('a 5" disk', [["a"], ['5"'], ["disk"]]),
        *((f"error or {line}", [["error", line, "src/x.ts"]]) for line in ("src/x.ts:42", "src/x.ts:42:7:")),
        *((each, [[each]]) for each in ("10.0.4.17:6379", "12:30", "a::b", "x.ts:", "std::io:7")),
    ],
)
def test_every_clause_of_a_query_is_a_word_or_several_joined_by_or(text, expected):
    assert clauses(text) == expected


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("docker -compose", ["compose"]),
        ('docker -"compose file"', ["compose file"]),
        ("boats -<TODO>", ["<TODO>"]),
        ("git log --oneline", []),
        ("a -> b", []),
        ("x - y", []),
    ],
)
def test_a_minus_excludes_only_the_word_it_touches(query, excluded):
    assert [term.text for term in parse(query).excluded] == excluded


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("-experiments/x.md", "-experiments/x.md"),
        ("-- -experiments/x.md", "-experiments/x.md"),
        (" -Dfoo.bar=1 ", "-Dfoo.bar=1"),
        ("--no-sandbox", "--no-sandbox"),
    ],
)
def test_an_identifier_with_a_minus_before_it_is_text_where_it_stands_alone(query, text):
    assert clauses(query) == [[text]]
    assert parse(query).excluded == ()


@pytest.mark.parametrize("query", ["-experiments", "-a/b.md -c/d.md", '-"a/b.md"'])
def test_nothing_but_exclusions_stays_that(query):
    assert clauses(query) == []


def test_loosening_takes_phrases_apart_and_keeps_exclusions():
    question = interpretations('"exact phrase" or other -not')[1]

    assert [[term.text for term in clause] for clause in question.clauses] == [["exact"], ["phrase"], ["other"]]
    assert [term.text for term in question.excluded] == ["not"]


IDENTIFIERS = [
    "src/store/x.py", "get_summary", "getSummary", "fts5.ts", ".env", "__init__", "--flag", "std::map", "a1b2c3d4",
    "f()",
]  # fmt: skip
WORDS = ["database", "What", "U.S.", "2023", "e.g.", "don't", "well-known", "数据库", "café"]


@pytest.mark.parametrize("word", [*IDENTIFIERS, *WORDS])
def test_names_of_programs_are_identifiers_and_plain_words_are_not(word):
    assert is_identifier(word) is (word in IDENTIFIERS)


def test_a_question_about_an_identifier_is_a_question():
    assert parse("getSummary null").is_look_up
    assert not parse("Where did we decide what getSummary returns?").is_look_up


@given(st.text(max_size=300))
def test_every_text_is_a_query(text):
    for question in interpretations(text):
        assert all(term.text.strip() for term in (*question.terms, *question.excluded))


@pytest.mark.parametrize("between", [" ", " or ", " -"])
def test_a_pasted_page_is_searched_by_its_first_words(between):
    question = parse(between.join(f"word{number}" for number in range(100_000)))

    assert len(question.terms) + len(question.excluded) == MOST_TERMS


def test_a_quoted_page_is_searched_by_its_first_words_if_it_is_nowhere_as_a_whole():
    [whole, words] = interpretations('"' + " ".join(f"word{number}" for number in range(1_000)) + '"')

    assert (len(whole.terms), len(words.terms)) == (1, MOST_TERMS)


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
        *((text, asked()) for text in ("we may march on", "port 5433", "marching band", "version 3.14", "12 apples")),
    ],
)
def test_days_months_weekdays_and_years_are_found(text, expected):
    assert dates_in(text) == expected


def test_a_moment_answers_better_the_more_of_the_date_is_true_of_it():
    dates = dates_in("7 May 2023")

    exact, same_month, same_year, other = (
        dates.information_in(datetime(*day, tzinfo=UTC))
        for day in [(2023, 5, 7), (2023, 5, 8), (2023, 6, 7), (2022, 6, 7)]
    )

    assert exact > same_month > same_year > other == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When did the build break?", True),
        ("so when was it deployed?", True),
        ("In which year did she move?", True),
        ("what day is the release", True),
        ("How long ago did we talk?", True),
        ("What broke when we deployed?", False),
        ("Where were you in May?", False),
        ("whenever", False),
        ("How long is it?", False),
    ],
)
def test_a_question_for_a_time_is_not_one_that_only_speaks_of_times(text, expected):
    assert asks_when(text) is expected


@given(st.text(alphabet="0123456789- MayJuneth", max_size=60), st.datetimes())
def test_no_text_and_no_moment_is_an_error(text, moment):
    assert dates_in(text).information_in(moment) >= 0


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", ["a", "a-", "中"])
def test_a_word_without_an_extension_is_read_in_linear_time(part):
    assert not is_identifier(f"{part * 100_000}!")
