"""What a full-text query is taken for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.query.parser import MOST_TERMS, Term, is_identifier, loosened, parse


def clauses(text: str) -> list[list[str]]:
    return [[term.text for term in clause] for clause in parse(text).clauses]


def test_words_are_clauses_of_their_own():
    assert clauses("docker  compose\tnetwork") == [["docker"], ["compose"], ["network"]]


def test_a_quoted_phrase_is_one_term():
    question = parse('the "exact phrase" here')

    assert question.terms[1] == Term("exact phrase", is_phrase=True)


def test_curly_quotes_quote_too():
    assert parse("“exact phrase”").terms == (Term("exact phrase", is_phrase=True),)


def test_a_single_quoted_word_is_a_word():
    assert parse('"port"').terms == (Term("port"),)


def test_or_joins_what_stands_on_both_sides():
    assert clauses("postgres OR sqlite speed") == [["postgres", "sqlite"], ["speed"]]


def test_or_joins_a_repeated_word_with_the_next_alone():
    assert clauses("a a or b") == [["a"], ["a", "b"]]


def test_or_at_the_edge_of_a_query_is_nothing():
    assert clauses("or docker or") == [["docker"]]


@pytest.mark.parametrize("line", ["src/x.ts:42", "src/x.ts:42:7", "src/x.ts:42:7:"])
def test_a_line_of_a_file_is_answered_by_the_file(line):
    assert clauses(f"error at {line}") == [["error"], ["at"], [line, "src/x.ts"]]
    assert clauses(f"parser or {line}") == [["parser", line, "src/x.ts"]]


@pytest.mark.parametrize("text", ["10.0.4.17:6379", "12:30", "a::b", "x.ts:", "std::io:7", '"x.ts:42 fails"'])
def test_what_else_ends_with_a_colon_and_a_number_has_no_line(text):
    assert [len(clause) for clause in clauses(text)] == [1]


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("docker -compose", ["compose"]),
        ('docker -"compose file"', ["compose file"]),
        ("git log --oneline", []),
        ("a -> b", []),
        ("x - y", []),
    ],
)
def test_a_minus_excludes_only_the_word_it_touches(query, excluded):
    assert [term.text for term in parse(query).excluded] == excluded


def test_an_unclosed_quote_is_part_of_its_word():
    assert clauses('a 5" disk') == [["a"], ['5"'], ["disk"]]


def test_a_word_said_twice_is_one_clause():
    assert clauses("yes yes yes") == [["yes"]]


def test_loosening_takes_phrases_apart_and_keeps_exclusions():
    question = loosened(parse('"exact phrase" or other -not'))

    assert [[term.text for term in clause] for clause in question.clauses] == [["exact"], ["phrase"], ["other"]]
    assert [term.text for term in question.excluded] == ["not"]


@pytest.mark.parametrize(
    "name",
    [
        "src/store/x.py",
        "get_summary",
        "getSummary",
        "fts5.ts",
        ".env",
        "__init__",
        "--flag",
        "std::map",
        "a1b2c3d4",
        "f()",
    ],
)
def test_names_of_programs_are_identifiers(name):
    assert is_identifier(name)


@pytest.mark.parametrize("word", ["database", "What", "U.S.", "2023", "e.g.", "don't", "well-known", "数据库", "café"])
def test_plain_words_are_not_identifiers(word):
    assert not is_identifier(word)


def test_a_question_about_an_identifier_is_a_question():
    assert parse("getSummary null").is_look_up
    assert not parse("Where did we decide what getSummary returns?").is_look_up


@given(st.text(max_size=300))
def test_every_text_is_a_query(text):
    question = parse(text)

    assert all(term.text.strip() for term in (*question.terms, *question.excluded))
    assert loosened(question).clauses is not None


def test_a_pasted_page_is_searched_by_its_first_words():
    question = parse(" ".join(f"word{number}" for number in range(100_000)))

    assert len(question.clauses) == MOST_TERMS
