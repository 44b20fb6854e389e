"""How what a search has found is ordered."""

from __future__ import annotations

from datetime import UTC, datetime

from retrieval.search.query.parser import Dates, dates_in
from retrieval.search.relevance import ranking
from retrieval.search.relevance.hits import Hit, Neighbour
from retrieval.search.relevance.ranking import Weights, place_of, seq_of
from retrieval.search.snippets import best_passage

MOMENT = datetime(2024, 5, 7, tzinfo=UTC)


def a_hit(
    seq: int,
    shares: dict[int, float],
    *,
    tokens: int = 20,
    answered_in: int | None = None,
    role: str = "user",
    passage: frozenset[int] | None = None,
) -> Hit:
    of_each = [shares.get(term, 0.0) for term in range(max(shares) + 1)]
    place = place_of(1, seq)
    return Hit(str(seq), place, of_each, tokens, answered_in=answered_in, role=role, passage=passage)


def talk(lengths: dict[str, int]) -> list[Hit]:
    """Ten messages of each role, of so many tokens."""
    return [a_hit(seq, {0: 0.6}, role=role, tokens=tokens) for seq in range(10) for role, tokens in lengths.items()]


def a_neighbour(at: datetime) -> Neighbour:
    return Neighbour("1", place_of(1, 1), 1, created_at=at, author=None, role="user", tokens=20)


def order(hits: list[Hit], weights: Weights) -> list[int]:
    return [seq_of(place) for place in ranking.best_places(ranking.in_context(hits, weights), 100)]


def test_a_rare_word_is_worth_more_than_a_common_one_and_two_words_more_than_one_that_comes_often():
    assert order([a_hit(10, {1: 0.6}), a_hit(50, {0: 0.6})], Weights((5.0, 1.0)))[0] == 50
    assert order([a_hit(10, {0: 0.95}), a_hit(50, {0: 0.6, 1: 0.6})], Weights((2.0, 2.0)))[0] == 50


def test_an_answer_farther_on_is_worth_as_much_as_one_right_behind_its_question():
    near, far, unknown = (
        ranking.in_context([a_hit(10, {0: 0.6}, answered_in=on)], Weights((2.0,))) for on in (1, 5, 0)
    )

    assert near[place_of(1, 11)] > far[place_of(1, 11)] == unknown[place_of(1, 11)]
    assert far[place_of(1, 15)] > far[place_of(1, 11)]
    assert place_of(1, 15) not in unknown


def test_to_a_question_in_words_a_message_that_asks_is_worth_less_than_one_that_says_the_same():
    hits = [a_hit(10, {0: 0.6}, answered_in=1), a_hit(50, {0: 0.6})]

    asked, sought = (ranking.in_context(hits, Weights((2.0,), is_sentence=is_one)) for is_one in (True, False))

    assert asked[place_of(1, 10)] < asked[place_of(1, 50)]
    assert sought[place_of(1, 10)] == sought[place_of(1, 50)]
    assert asked[place_of(1, 11)] == sought[place_of(1, 11)]


def test_a_message_among_others_that_answer_is_worth_more_than_one_alone():
    alone, together = a_hit(100, {0: 0.6}), [a_hit(203, {0: 0.6}), a_hit(204, {1: 0.6})]

    assert order([alone, *together], Weights((2.0, 2.0)))[0] in (203, 204)


def test_length_costs_only_beyond_that_of_a_turn_of_talk():
    weights = Weights((2.0,))

    short, turn, log = (ranking.in_context([a_hit(10, {0: 0.6}, tokens=tokens)], weights) for tokens in (1, 100, 5000))

    assert short == turn
    assert log.keys() == turn.keys()
    assert all(log[place] < 0.6 * turn[place] for place in turn)


def test_words_that_follow_each_other_count_in_full_however_long_the_text():
    together, apart = (Weights((2.0,), in_a_row=how_many) for how_many in (1, 0))
    turn, log = (a_hit(10, {0: 0.6}, tokens=tokens) for tokens in (100, 5000))

    assert ranking.in_context([log], together) == ranking.in_context([turn], together)
    assert ranking.alone(log, together) == ranking.alone(turn, together) > ranking.alone(log, apart)


def test_a_page_borrows_less_than_a_line():
    weights, asked = Weights((2.0, 2.0)), a_hit(10, {0: 0.6}, answered_in=1)

    line, page = (
        ranking.in_context([asked, answer], weights)[answer.place] - ranking.in_context([answer], weights)[answer.place]
        for answer in (a_hit(11, {1: 0.6}, tokens=tokens) for tokens in (20, 900))
    )

    assert line > page > 0


def test_a_page_that_says_the_words_together_is_worth_more_than_one_that_says_them_here_and_there():
    together, apart = (
        a_hit(seq, {0: 0.6, 1: 0.6}, tokens=800, passage=frozenset(passage))
        for seq, passage in ((10, {0, 1}), (50, {0}))
    )

    assert order([apart, together], Weights((2.0, 2.0)))[0] == 10


def test_the_best_passage_is_that_whose_words_are_rarest_together():
    words = "'it''s':90A 'port':3A,400A 'replica':410A 'server':1A,20A,25A"
    lexemes = {"port": 0, "replica": 1, "server": 2, "it's": 3}

    assert best_passage(words, lexemes, (3.0, 3.0, 1.0, 1.0)) == {0, 1}
    assert best_passage(words, lexemes, (1.0, 1.0, 5.0, 1.0)) == {0, 2}
    assert best_passage("'port':16383A", lexemes, (3.0, 3.0, 1.0, 1.0)) is None


def test_a_user_who_names_an_identifier_comes_before_an_output_with_it():
    user, output = (a_hit(seq, {0: 0.6}, role=role) for seq, role in ((10, "user"), (50, "tool")))
    weights = Weights((2.0,), names_identifier=True)

    assert ranking.by_keywords(user, weights) > ranking.by_keywords(output, weights)


def test_what_is_said_in_a_line_counts_more_than_the_page_that_repeats_it():
    speakers = ranking.speakers_of(talk({"user": 50, "assistant": 800}))
    line, page = (a_hit(90, {0: 0.6}, role=role, tokens=90) for role in ("user", "assistant"))

    assert Weights(()).of_speech(line, speakers) > 1 > Weights(()).of_speech(page, speakers)
    assert Weights((), names_identifier=True).of_speech(page, speakers) == 1


def test_speakers_who_write_at_about_the_same_length_count_the_same():
    assert set(ranking.speakers_of(talk({"user": 50, "assistant": 80})).values()) == {1.0}
    assert ranking.speakers_of([a_hit(1, {0: 0.6}), a_hit(2, {0: 0.6}, role="assistant", tokens=900)]) == {}


def test_a_standing_instruction_counts_more_where_one_side_writes_lines_and_the_other_pages():
    pages, lines = (ranking.speakers_of(talk({"user": 50, "assistant": tokens})) for tokens in (800, 80))
    said = a_neighbour(MOMENT)
    asks, asks_when = Weights((), is_sentence=True), Weights((), is_sentence=True, asks_when=True)

    assert asks.may_be_instructed and not asks_when.may_be_instructed
    assert asks.of_instruction(said._replace(instructs=True), pages) > 1
    assert asks.of_instruction(said, pages) == asks.of_instruction(said._replace(instructs=True), lines) == 1


def test_a_message_of_the_day_named_is_worth_more():
    weights = Weights((), dates=dates_in("on 7 May"))

    assert weights.of_its_own(a_neighbour(MOMENT)) > 0
    assert weights.of_its_own(a_neighbour(MOMENT.replace(month=6))) == 0
    assert Weights(()).dates == Dates()
