"""Which words find the candidates of a search."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.query.compiled_query import MOST_CANDIDATES, MOST_LEXEMES, plan
from retrieval.search.query.lexemes import lexeme_query, meaning
from retrieval.search.query.parser import Term


def word(text: str, *, parts: tuple[str, ...] = ()):
    return meaning(Term(text), whole=(text,), parts=parts, query="")


def planned(*words, frequencies=None, rows=100_000, excluded=(), **options):
    return plan([[each] for each in words], excluded, frequencies=frequencies or {}, rows=rows, **options)


def asked_for(how):
    """What the index is asked for, one condition after the other."""
    return tuple(how.asked.values())


def answers(query, held):
    """Whether a text with these lexemes answers a tsquery without phrases."""
    python = re.sub(r"'(\w+)'", lambda found: str(found[1] in held), query)
    return eval(python.replace("&", " and ").replace("|", " or ").replace("!", " not "))


def test_words_that_the_statistics_do_not_know_are_all_anchors():
    how = planned(word("docker"), word("compose"))

    assert how.anchors == ("docker", "compose")
    assert not how.is_bounded


def test_a_very_common_word_is_no_anchor_where_a_rarer_one_is_asked_for():
    how = planned(word("error"), word("quux"), frequencies={"error": 0.5})

    assert how.anchors == ("quux",)
    assert set(how.lexemes) == {"error", "quux"}
    assert how.is_bounded


def test_a_very_common_word_alone_is_looked_for_in_the_newest_rows():
    how = planned(word("error"), frequencies={"error": 0.5}, rows=100_000)

    assert how.anchors == ("error",)
    assert how.newest == MOST_CANDIDATES / 50_000
    assert how.is_bounded


def test_texts_that_answer_all_of_a_question_are_looked_for_everywhere():
    how = planned(word("error"), word("port"), frequencies={"error": 0.5, "port": 0.4}).for_every_clause()

    assert how.query == "((('error'))) & ((('port')))"
    assert (how.newest, how.is_bounded) == (1.0, False)
    assert how.is_answered_by([])


def test_of_very_many_words_the_rarest_are_looked_for():
    common = [word(f"w{number}") for number in range(100)]
    how = planned(*common, word("rare"), frequencies={f"w{number}": 0.01 for number in range(100)}, rows=1000)

    assert len(how.lexemes) == MOST_LEXEMES
    assert how.lexemes[0] == "rare"


def test_parts_of_a_compound_that_are_nearly_everywhere_are_not_asked_of_the_index():
    path = word("src/x/chain.py", parts=("src", "x", "chain", "py"))
    how = planned(path, frequencies={"src": 0.5, "py": 0.5}).for_every_clause()

    assert how.query == "((('src/x/chain.py') | ('src' & 'x' & 'chain' & 'py')))"
    assert not how.asks_for_all
    assert asked_for(how) == ("(('src/x/chain.py') | 'x')", "(('src/x/chain.py') | 'chain')")


def test_the_rows_of_other_conversations_need_not_be_checked_for_such_parts():
    path, shares = word("src/model", parts=("src", "model")), {"src": 0.5, "model": 0.002}
    of_all = planned(path, frequencies=shares, rows=100_000, everywhere=100_000, of_one=100_000).for_every_clause()
    of_some = planned(path, frequencies=shares, rows=10_000, everywhere=100_000, of_one=10_000).for_every_clause()

    assert asked_for(of_all) == ("(('src/model') | 'src')", "(('src/model') | 'model')")
    assert asked_for(of_some) == ("(('src/model') | 'model')",)


def test_clauses_are_asked_of_the_index_in_up_to_three_conditions_of_which_the_last_has_the_rest():
    a, b, c, d, e = map(word, ("ant", "bee", "cat", "dog", "eel"))

    def asked(*words):
        return asked_for(planned(*words).for_every_clause())

    assert asked(a) == ("((('ant')))",)
    assert asked(a, b) == ("((('ant')))", "((('bee')))")
    assert asked(a, b, c) == ("((('ant')))", "((('bee')))", "((('cat')))")
    assert asked(a, b, c, d, e) == ("((('ant')))", "((('bee')))", "((('cat'))) & ((('dog'))) & ((('eel')))")
    assert len(planned(a, b).asked) == 1


LEXEMES = st.sampled_from("abcdefgh")
TERMS = st.builds(
    lambda whole, parts: meaning(Term("x"), whole=whole, parts=parts, query=""),
    st.lists(LEXEMES, min_size=1, max_size=2, unique=True),
    st.lists(LEXEMES, max_size=4, unique=True),
)


@given(
    st.lists(st.lists(TERMS, min_size=1, max_size=2), min_size=1, max_size=4),
    st.lists(TERMS, max_size=1),
    st.dictionaries(LEXEMES, st.sampled_from([0.1, 0.5, 0.9])),
    st.sets(LEXEMES),
)
def test_the_conditions_for_the_index_hold_for_all_texts_that_answer_and_no_others_if_they_say_so(
    clauses, excluded, frequencies, held
):
    left_out = [replace(each, query=each.as_query) for each in excluded]
    how = plan(clauses, left_out, frequencies=frequencies, rows=1000, everywhere=1000).for_every_clause()

    is_found = all(answers(condition, held) for condition in asked_for(how))
    is_answer = answers(how.query, held)

    assert is_found or not is_answer
    assert is_found == is_answer or not how.asks_for_all


def test_of_a_compound_of_nothing_but_such_parts_all_are_asked():
    how = planned(word("src.py", parts=("src", "py")), frequencies={"src": 0.5, "py": 0.5}).for_every_clause()

    assert how.asks_for_all


def test_a_common_part_beside_one_that_is_hardly_rarer_is_asked():
    path = word("src/model", parts=("src", "model"))
    how = planned(path, frequencies={"src": 0.5, "model": 0.15}).for_every_clause()

    assert how.asks_for_all


def test_rare_words_that_are_to_stand_together_are_looked_up_by_words_alone():
    how = planned(word("quux"), word("frob"), rows=100_000, everywhere=1_000_000)

    assert not how.by_words_alone
    assert how.for_every_clause().by_words_alone


def test_any_word_of_a_look_up_is_a_compound_as_a_whole_or_a_plain_word_that_is_an_anchor():
    path = word("src/x/chain.py", parts=("src", "x", "chain", "py"))
    common = {"src": 0.5, "py": 0.5, "error": 0.5}
    how = planned(path, word("quux"), word("error"), frequencies=common).for_any_word()

    assert how.query == "((('src/x/chain.py') | ('src' & 'x' & 'chain' & 'py')) | 'quux')"
    assert asked_for(how) == ("((('src/x/chain.py') | ('x' & 'chain')) | 'quux')",)
    assert how.is_bounded


def test_of_compounds_alone_nothing_is_left_out_where_any_of_them_is_looked_for():
    path = word("src/x/chain.py", parts=("src", "x", "chain", "py"))
    how = planned(path, frequencies={"src": 0.5, "py": 0.5})

    assert how.is_bounded
    assert not how.for_any_word().is_bounded


def test_where_compounds_are_in_very_many_texts_it_is_their_rarest_parts_that_are_looked_for():
    assert planned(word("a/b", parts=("a", "b")), frequencies={"a": 0.3, "b": 0.3}).for_any_word() is None
    assert planned(word("plain")).for_any_word() is None


def test_stop_words_alone_cannot_be_looked_up():
    assert plan([[meaning(Term("the"), whole=(), parts=(), query="")]], [], frequencies={}, rows=10) is None


def test_exclusions_and_phrases_hold_for_every_candidate():
    phrase = meaning(
        Term("exact phrase", is_phrase=True), whole=("exact", "phrase"), parts=(), query="'exact' <-> 'phrase'"
    )
    without = meaning(Term("no"), whole=("no",), parts=(), query="'no'")

    how = planned(phrase, excluded=[without])

    assert how.query == "('exact' | 'phrase') & (('exact' <-> 'phrase')) & !('no')"


def test_words_that_follow_each_other_are_a_pair():
    assert planned(word("team"), word("members")).terms == ("'team'", "'members'", "'team' <-> 'members'")


def test_in_a_sentence_a_word_may_stand_between_the_two_of_a_pair_which_then_counts_less():
    few, sentence = (planned(word("game"), word("thrones"), is_sentence=is_sentence) for is_sentence in (False, True))

    assert sentence.terms[-1] == "'game' <-> 'thrones' | 'game' <2> 'thrones'"
    assert sentence.pair_weight < few.pair_weight == 1


def test_a_pair_is_made_of_words_that_are_looked_for():
    many = [word(f"w{number}") for number in range(MOST_LEXEMES + 2)]

    how = planned(*many, frequencies={"w1": 0.5, "w3": 0.5})

    assert how.pairs[0] == ("w4", "w5")


def test_a_word_is_found_as_any_of_its_forms_where_that_is_asked_for():
    won = meaning(Term("win"), whole=("win",), parts=(), query="", forms=("won",))

    how, plainly = (planned(won, word("cup"), in_all_forms=in_all_forms) for in_all_forms in (True, False))

    assert (how.query,) == asked_for(how) == ("(('win' | 'won') | 'cup')",)
    assert how.terms == ("('win' | 'won')", "'cup'", "('win' | 'won') <-> 'cup'")
    assert plainly.query == "('win' | 'cup')"


def test_how_common_a_word_is_counts_all_its_forms():
    going = meaning(Term("gone"), whole=("gone",), parts=(), query="", forms=("go", "went"))

    how = planned(going, word("quux"), in_all_forms=True, frequencies={"go": 0.3, "went": 0.1})

    assert how.anchors == ("quux",)


def test_a_form_that_is_asked_for_by_itself_is_no_form_of_another_word():
    see = meaning(Term("see"), whole=("see",), parts=(), query="", forms=("saw", "seen"))

    assert planned(see, word("saw"), in_all_forms=True).terms[:2] == ("('see' | 'seen')", "'saw'")


def test_what_is_no_plain_word_has_no_forms():
    phrase = meaning(
        Term("take part", is_phrase=True), whole=("take", "part"), parts=(), query="'take' <-> 'part'", forms=("took",)
    )

    assert phrase.forms == ()


def test_a_compound_is_held_whole_or_by_all_its_parts():
    how = planned(word("getsummari", parts=("get", "summari")))

    assert how.lexemes == ("getsummari", "get", "summari")
    assert how.is_answered_by([0])
    assert how.is_answered_by([1, 2])
    assert not how.is_answered_by([1])
    assert how.for_every_clause().query == "((('getsummari') | ('get' & 'summari')))"


def test_a_lexeme_cannot_break_out_of_its_quotes():
    assert lexeme_query("a'b\\c") == "'a''b\\\\c'"


def test_one_character_of_chinese_is_sought_as_the_beginning_of_a_pair():
    assert lexeme_query("数") == "'数':*"
    assert lexeme_query("x") == "'x'"


def test_compounds_are_ranked_by_their_parts_in_a_row_and_words_by_those_beside_them():
    compound = meaning(Term("a_b"), whole=(), parts=("a", "b"), query="", in_a_row="'a' <-> 'b'")

    how = plan([[compound], [compound], [word("c")], [word("d")]], [], frequencies={}, rows=10)

    assert how is not None
    assert [(each.lexemes, each.query) for each in how.in_a_row] == [
        (("a", "b"), "'a' <-> 'b'"),
        (("c", "d"), "'c' <-> 'd'"),
    ]
    assert how.terms[len(how.lexemes) :] == ("'a' <-> 'b'", "'c' <-> 'd'")


def test_pairs_of_chinese_stand_for_their_characters():
    found = meaning(Term("数据库"), whole=("数", "数据", "据库", "库"), parts=(), query="")

    assert found.whole == ("数据", "据库")


def test_where_others_hold_few_rows_with_a_word_the_index_for_words_is_the_only_one_looked_into():
    def is_alone(rows, everywhere, *, share=None):
        return planned(
            word("fjord"), frequencies=share and {"fjord": share}, rows=rows, everywhere=everywhere
        ).by_words_alone

    assert is_alone(100_000, 100_000)
    assert is_alone(100_000, 300_000)
    assert not is_alone(100, 1_000_000)
    assert not is_alone(100_000, 300_000, share=0.1)
    assert is_alone(100_000, 1_000_000, share=0.001)
    assert not is_alone(100_000, -1)


def test_in_one_conversation_its_rows_are_told_from_others_where_those_hold_many_of_what_is_asked():
    def planned_in_one(*shares, everywhere):
        words = {f"fjord{number}": share for number, share in enumerate(shares)}
        return planned(*map(word, words), frequencies=words, everywhere=everywhere, of_one=100_000, rows=100_000)

    common, rare = (planned_in_one(share, everywhere=300_000) for share in (0.1, 0.001))
    alone = planned_in_one(0.1, everywhere=100_000)
    # Of each that has the one it would be asked, and few of those have the other.
    together = planned_in_one(0.001, 0.001, everywhere=300_000).for_every_clause()
    often_together = planned_in_one(0.04, 0.04, everywhere=300_000).for_every_clause()

    assert all(each.by_words_alone for each in (common, rare, alone, together, often_together))
    assert [each.in_conversation for each in (common, rare, often_together)] == [True, True, True]
    assert [each.in_conversation for each in (alone, together)] == [False, False]
    assert common.expected_by_index() == 10_000
    assert alone.expected_by_index() == 10_000
    assert rare.expected_by_index() == 100


def test_words_that_have_to_come_together_are_expected_in_fewer_rows_than_either():
    shares = {"error": 0.1, "port": 0.04}
    how = planned(word("error"), word("port"), frequencies=shares, everywhere=100_000)

    both, either = how.for_every_clause(), how.for_any_lexeme()

    assert both.expected_share < both.greatest_share == 0.04 < either.expected_share
    assert both.rows_worth_collecting() < either.rows_worth_collecting()


def test_with_a_word_without_a_count_nothing_is_expected():
    how = planned(word("error"), word("quux"), frequencies={"error": 0.1}, everywhere=100_000).for_every_clause()

    assert (how.expected_share, how.greatest_share) == (0, 0)


def test_before_anything_was_counted_no_row_is_worth_walking_past():
    how = planned(word("error")).for_every_clause()

    assert how.rows_worth_collecting() == 0
