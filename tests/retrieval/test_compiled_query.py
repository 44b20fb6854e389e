"""Which lexemes of a query find candidates, and which rank them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.query.compiled_query import (
    MOST_CANDIDATES,
    MOST_LEXEMES,
    CompiledQuery,
    LexedTerm,
    compile_query,
    lexed_term,
    lexeme_query,
)
from retrieval.search.query.parser import ParsedQuery, Term


def word(text: str, *, parts: tuple[str, ...] = (), forms: tuple[str, ...] = ()) -> LexedTerm:
    return lexed_term(Term(text), whole=(text,), parts=parts, query="", forms=forms)


def compiled(
    *clauses: LexedTerm | tuple[LexedTerm, ...],
    excluded: tuple[LexedTerm, ...] = (),
    frequencies: Mapping[str, float] | None = None,
    rows: int = 100_000,
    text: str = "",
    in_all_forms: bool = False,
) -> CompiledQuery | None:
    every = [each if isinstance(each, tuple) else (each,) for each in clauses]
    parsed = ParsedQuery(
        text, tuple(tuple(each.term for each in clause) for clause in every), tuple(each.term for each in excluded)
    )
    lexed = {(each.term, False): each for clause in every for each in clause}
    lexed |= {(each.term, True): each for each in excluded}
    return compile_query(parsed, lexed, frequencies=frequencies or {}, rows=rows, in_all_forms=in_all_forms)


def matches(tsquery: str, held: set[str]) -> bool:
    """Whether a text with these lexemes matches a tsquery without phrases."""
    python = re.sub(r"'(\w+)'", lambda found: str(found[1] in held), tsquery)
    return bool(eval(python.replace("&", " and ").replace("|", " or ").replace("!", " not ")))


def test_words_that_were_not_counted_are_all_anchors():
    query = compiled(word("docker"), word("compose"))

    assert query.anchors == ("docker", "compose")
    assert not query.is_bounded


def test_a_very_common_word_beside_a_rarer_one_is_no_anchor():
    query = compiled(word("error"), word("quux"), frequencies={"error": 0.5})

    assert query.anchors == ("quux",)
    assert set(query.lexemes) == {"error", "quux"}
    assert query.is_bounded


def test_a_very_common_word_alone_is_searched_in_the_newest_rows():
    query = compiled(word("error"), frequencies={"error": 0.5})

    assert query.anchors == ("error",)
    assert query.newest == MOST_CANDIDATES / 50_000
    assert query.is_bounded


def test_texts_that_match_every_clause_are_searched_everywhere():
    query = compiled(word("error"), word("port"), frequencies={"error": 0.5, "port": 0.4}).for_every_clause()

    assert (query.newest, query.is_bounded) == (1.0, False)
    assert query.is_matched_by([])


def test_of_very_many_words_the_rarest_are_ranked_by():
    common = [word(f"w{number}") for number in range(100)]
    query = compiled(*common, word("rare"), frequencies={f"w{number}": 0.01 for number in range(100)}, rows=1000)

    assert len(query.lexemes) == MOST_LEXEMES
    assert query.lexemes[0] == "rare"


LEXEMES = st.sampled_from("abcdefgh")
TERMS = st.builds(
    lambda number, whole, parts: lexed_term(Term(str(number)), whole=whole, parts=parts, query=""),
    st.integers(),
    st.lists(LEXEMES, min_size=1, max_size=2, unique=True),
    st.lists(LEXEMES, max_size=4, unique=True),
)
CLAUSES = st.lists(st.lists(TERMS, min_size=1, max_size=2).map(tuple), min_size=1, max_size=4)


def has(term: LexedTerm, held: set[str]) -> bool:
    return set(term.whole) <= held or (bool(term.parts) and set(term.parts) <= held)


@given(CLAUSES, st.sets(LEXEMES))
def test_the_conditions_of_every_clause_hold_for_the_texts_with_a_term_of_each(clauses, held):
    clauses = [tuple(lexed_term(Term(f"{n}.{m}"), whole=each.whole, parts=each.parts, query="")
               for m, each in enumerate(clause)) for n, clause in enumerate(clauses)]  # fmt: skip
    query = compiled(*clauses).for_every_clause()

    is_match = all(any(has(term, held) for term in clause) for clause in clauses)

    assert len(query.conditions) <= 3
    assert all(matches(condition, held) for condition in query.conditions.values()) == is_match
    assert matches(query.query, held) == is_match


def test_any_word_is_a_compound_as_a_whole_or_a_plain_word_that_is_an_anchor():
    path = word("chain", parts=("src", "x", "py"))
    common = {"src": 0.5, "py": 0.5, "error": 0.5}
    query = compiled(path, word("quux"), word("error"), frequencies=common).for_any_word()

    for held, is_match in (({"chain"}, True), ({"src", "x", "py"}, True), ({"quux"}, True), ({"src", "error"}, False)):
        assert matches(query.query, held) == is_match
    assert query.is_bounded


def test_of_compounds_alone_no_text_with_any_of_them_is_left_out():
    path = word("src/x/chain.py", parts=("src", "x", "chain", "py"))
    query = compiled(path, frequencies={"src": 0.5, "py": 0.5})

    assert query.is_bounded
    assert not query.for_any_word().is_bounded


def test_compounds_in_very_many_texts_are_searched_by_their_rarest_parts():
    assert compiled(word("a/b", parts=("a", "b")), frequencies={"a": 0.3, "b": 0.3}).for_any_word() is None
    assert compiled(word("plain")).for_any_word() is None


def test_stop_words_alone_have_no_query():
    assert compiled(lexed_term(Term("the"), whole=(), parts=(), query="")) is None


def test_exclusions_and_phrases_hold_for_every_candidate():
    phrase = lexed_term(Term("a b", is_phrase=True), whole=("a", "b"), parts=(), query="'a' <-> 'b'")
    without = lexed_term(Term("no"), whole=("no",), parts=(), query="'no'")

    query = compiled(phrase, excluded=(without,))

    assert query.query == "('a' | 'b') & (('a' <-> 'b')) & !('no')"


def test_words_that_follow_each_other_are_ranked_by_that():
    assert compiled(word("team"), word("members")).terms == ("'team'", "'members'", "'team' <-> 'members'")


def test_in_a_sentence_a_word_may_stand_between_two_that_follow_each_other():
    few, sentence = (compiled(word("game"), word("thrones"), text=text) for text in ("", "game thrones?"))

    assert sentence.terms[-1] == "'game' <-> 'thrones' | 'game' <2> 'thrones'"
    assert sentence.in_a_row[0].weight < few.in_a_row[0].weight == 1


def test_a_pair_is_made_of_words_that_are_ranked_by():
    many = [word(f"w{number}") for number in range(MOST_LEXEMES + 2)]

    assert compiled(*many, frequencies={"w1": 0.5, "w3": 0.5}).pairs[0] == ("w4", "w5")


def test_a_word_of_a_sentence_is_found_as_any_of_its_forms():
    won = word("win", forms=("won",))
    sentence, few = (compiled(won, word("cup"), text=text, in_all_forms=True) for text in ("win the cup?", "win cup"))

    assert sentence.terms == (
        "('win' | 'won')", "'cup'", "('win' | 'won') <-> 'cup' | ('win' | 'won') <2> 'cup'"
    )  # fmt: skip
    assert matches(sentence.query, {"won"})
    assert not matches(few.query, {"won"})


def test_how_common_a_word_is_counts_all_its_forms():
    going = word("gone", forms=("go", "went"))
    query = compiled(going, word("quux"), text="gone quux?", in_all_forms=True, frequencies={"go": 0.3, "went": 0.1})

    assert query.anchors == ("quux",)


def test_a_form_that_the_query_has_by_itself_is_no_form_of_another_word():
    query = compiled(word("see", forms=("saw", "seen")), word("saw"), text="see saw?", in_all_forms=True)

    assert query.terms[:2] == ("('see' | 'seen')", "'saw'")


def test_a_phrase_has_no_forms():
    phrase = lexed_term(
        Term("take part", is_phrase=True), whole=("take", "part"), parts=(), query="'take' <-> 'part'", forms=("took",)
    )

    assert phrase.forms == ()


def test_a_compound_is_held_whole_or_by_all_its_parts():
    query = compiled(word("getsummari", parts=("get", "summari")))

    assert query.lexemes == ("getsummari", "get", "summari")
    assert [query.is_matched_by(places) for places in ([0], [1, 2], [1])] == [True, True, False]


def test_compounds_are_ranked_by_their_parts_in_a_row():
    compound = lexed_term(Term("a_b"), whole=(), parts=("a", "b"), query="", in_a_row="'a' <-> 'b'")

    query = compiled(compound, compound, word("c"), word("d"))

    assert [(each.lexemes, each.query) for each in query.in_a_row] == [
        (("a", "b"), "'a' <-> 'b'"),
        (("c", "d"), "'c' <-> 'd'"),
    ]


def test_words_that_come_together_are_expected_in_fewer_rows_than_either():
    query = compiled(word("error"), word("port"), frequencies={"error": 0.1, "port": 0.04})

    assert query.for_every_clause().expected_share < 0.04 < query.for_any_lexeme().expected_share


@pytest.mark.parametrize(("lexeme", "query"), [("a'b\\c", "'a''b\\\\c'"), ("数", "'数':*"), ("x", "'x'")])
def test_a_lexeme_is_quoted_and_one_character_of_chinese_begins_a_pair(lexeme, query):
    assert lexeme_query(lexeme) == query


def test_pairs_of_chinese_stand_for_their_characters():
    assert lexed_term(Term("数据库"), whole=("数", "数据", "据库", "库"), parts=(), query="").whole == ("数据", "据库")
