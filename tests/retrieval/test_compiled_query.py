"""Which lexemes of a query find candidates, and which rank them."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
