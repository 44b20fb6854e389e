"""A word that no text has finds words that begin like it: other forms, and the whole of a short hash."""

from __future__ import annotations

import pytest

from retrieval.types import GrepResult, GrepSort
from tests.factories import a_conversation
from tests.retrieval.lineages import engine

pytestmark = pytest.mark.django_db

TEXTS = [
    "Die Kündigungsfrist der Wohnung beträgt drei Monate.",
    "Η αδελφή μου μετακόμισε στη Θεσσαλονίκη.",
    "Журнал ошибок лежит в /var/log.",
    "Veritabanı yedeklerini ayrı bir sunucuda saklıyoruz.",
    "The regression came in with commit 9fceb02d0ae598e95dc970b74767f19372d61af8.",
    "We log with structlog.",
    "Моя сестра приехала с данными.",
    "Invoice 1850331 is paid.",
]


def found(query: str, *, sort: GrepSort = GrepSort.RELEVANCE) -> GrepResult:
    filler = [f"Note {number}: nothing else happened, sunucuda neither." for number in range(20)]
    conversation_id = a_conversation(*filler, *TEXTS, *filler).conversation_id
    return engine().grep(query=query, conversation_id=conversation_id, sort=sort)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Kündigungsfristen Wohnungen", TEXTS[0]),
        ("αδελφής Θεσσαλονίκης", TEXTS[1]),
        ("журналах", TEXTS[2]),
        ("ошибки", TEXTS[2]),
        ("sunucuda yedek", TEXTS[3]),
        ("9fceb02", TEXTS[4]),
    ],
)
def test_a_word_in_no_text_finds_words_that_begin_like_it(query, text):
    result = found(query)

    best = result.matches[0].snippet
    assert best.text == text[: len(best.text)]
    assert best.highlights
    assert result.relaxed
    assert "begin" in result.note
    assert result.dropped


@pytest.mark.parametrize("query", ["1850", "9fceb03", "structured", "Ville"])
def test_numbers_other_hashes_and_short_beginnings_find_nothing(query):
    assert found(query).matches == ()


@pytest.mark.parametrize(("query", "word"), [("сестрой", "сестра"), ("данные", "данными")])
def test_a_russian_word_is_found_in_another_form(query, word):
    result = found(query)

    [match] = result.matches
    assert [match.snippet.text[begin:end] for begin, end in match.snippet.highlights] == [word]
    assert not result.relaxed


def test_a_word_that_a_text_has_finds_no_others():
    result = found("commit")

    assert [match.snippet.text for match in result.matches] == [TEXTS[4]]
    assert not result.relaxed
    assert result.note is None


def test_a_sentence_whose_other_words_are_found_needs_none():
    result = found("Which commit did the structlogger regression come in with?")

    assert result.dropped == ("structlogger",)
    assert result.note is None
