"""Which lexemes of a query find candidates, and which rank them."""

from __future__ import annotations

from collections.abc import Mapping

from retrieval.search.query.compiled_query import CompiledQuery, LexedTerm, compile_query, lexed_term
from retrieval.search.query.parser import ParsedQuery, Term


def word(text: str, *, parts: tuple[str, ...] = (), forms: tuple[str, ...] = ()) -> LexedTerm:
    return lexed_term(Term(text), whole=(text,), parts=parts, query="", forms=forms)


def compiled(
    *terms: LexedTerm, frequencies: Mapping[str, float] | None = None, text: str = "", in_all_forms: bool = False
) -> CompiledQuery:
    lexed = {(each.term, False): each for each in terms}
    parsed = ParsedQuery(text, tuple((each.term,) for each in terms))
    query = compile_query(parsed, lexed, frequencies=frequencies or {}, rows=100_000, in_all_forms=in_all_forms)
    assert query is not None
    return query


def test_compounds_in_very_many_texts_are_searched_by_their_rarest_parts():
    assert compiled(word("a/b", parts=("a", "b")), frequencies={"a": 0.3, "b": 0.3}).for_any_word() is None
    assert compiled(word("plain")).for_any_word() is None


def test_how_common_a_word_is_counts_all_its_forms():
    going = word("gone", forms=("go", "went"))
    query = compiled(going, word("quux"), text="gone quux?", in_all_forms=True, frequencies={"go": 0.3, "went": 0.1})

    assert query.anchors == ("quux",)
