"""Which lexemes of a query find candidates, and which rank them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.query.compiled_query import (
    CompiledQuery,
    LexedTerm,
    compile_query,
    lexed_term,
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
def test_a_query_for_every_clause_matches_the_texts_with_a_term_of_each(clauses, held):
    clauses = [tuple(lexed_term(Term(f"{n}.{m}"), whole=each.whole, parts=each.parts, query="")
               for m, each in enumerate(clause)) for n, clause in enumerate(clauses)]  # fmt: skip
    query = compiled(*clauses).for_every_clause()

    is_match = all(any(has(term, held) for term in clause) for clause in clauses)

    assert matches(query.query, held) == is_match


def test_any_word_is_a_compound_as_a_whole_or_a_plain_word_that_is_an_anchor():
    path = word("chain", parts=("src", "x", "py"))
    common = {"src": 0.5, "py": 0.5, "error": 0.5}
    query = compiled(path, word("quux"), word("error"), frequencies=common).for_any_word()

    for held, is_match in (({"chain"}, True), ({"src", "x", "py"}, True), ({"quux"}, True), ({"src", "error"}, False)):
        assert matches(query.query, held) == is_match
    assert query.is_bounded


def test_compounds_in_very_many_texts_are_searched_by_their_rarest_parts():
    assert compiled(word("a/b", parts=("a", "b")), frequencies={"a": 0.3, "b": 0.3}).for_any_word() is None
    assert compiled(word("plain")).for_any_word() is None


def test_how_common_a_word_is_counts_all_its_forms():
    going = word("gone", forms=("go", "went"))
    query = compiled(going, word("quux"), text="gone quux?", in_all_forms=True, frequencies={"go": 0.3, "went": 0.1})

    assert query.anchors == ("quux",)
