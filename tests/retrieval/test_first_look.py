"""Where the newest are looked for: every place once, and first where they are soon found."""

from hypothesis import given
from hypothesis import strategies as st

from conversations.scope import Scope
from retrieval.search import first_look
from retrieval.search.criteria import criteria
from retrieval.search.filters import Reach
from retrieval.search.first_look import farther, stretches
from retrieval.search.query.compiled_query import Plan, plan
from retrieval.search.query.lexemes import meaning
from retrieval.search.query.parser import Term
from retrieval.types import GrepScope

LONG = 100_000
LIMIT = 20


def reach_of(rows: int, *, low: int = 0, conversation_id: int | None = 1) -> Reach:
    asked = criteria(where=GrepScope.MESSAGES, conversation_id=conversation_id)
    return Reach(Scope(1), asked, rows, low, rows, newest=rows)


def every_word_of(*shares: float, rows: int = LONG, everywhere: int | None = None) -> Plan:
    words = {f"fjord{number}": share for number, share in enumerate(shares)}
    clauses = [[meaning(Term(word), whole=(word,), parts=(), query="")] for word in words]
    counted = {word: share for word, share in words.items() if share}
    how = plan(clauses, (), frequencies=counted, rows=rows, everywhere=everywhere or 2 * rows, of_one=rows)
    assert how is not None
    return how.for_every_clause()


def looked_at(*shares: float, found: tuple[int, ...] = (), rows: int = LONG) -> list[tuple[int, str]]:
    """How many places are looked at, and by which way, until the rest; `found`: in each stretch before that."""
    how, reach = every_word_of(*shares, rows=rows), reach_of(rows)
    looks = stretches(how, reach, high=rows, limit=LIMIT)
    seen = []
    wanted = LIMIT
    for count in found:
        near, rest = looks
        seen.append((near.upto - near.after, "walk" if near.walks else "place"))
        wanted -= count
        looks = farther(near, rest, how, reach, found=count, wanted=wanted)
    return [
        *seen,
        *((each.upto - each.after, "walk" if each.walks else "place" if each.by_place else "words") for each in looks),
    ]


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(0.0001, 1)), min_size=1, max_size=4),
    st.integers(1, 300_000),
    st.integers(0, 5000),
    st.integers(1, 50),
    st.lists(st.integers(0, 49), max_size=12),
)
def test_every_place_is_looked_at_once_whatever_is_found(shares, rows, low, limit, found):
    how, reach = every_word_of(*shares, rows=rows), reach_of(rows, low=min(low, rows - 1))
    looks = stretches(how, reach, high=rows, limit=limit)
    upto, counts = rows, iter(found)

    while len(looks) > 1:
        near, rest = looks
        assert near.upto == upto
        assert near.after < near.upto
        upto = near.after
        looks = farther(near, rest, how, reach, found=min(next(counts, 0), limit - 1), wanted=limit)

    [last] = looks
    assert (last.after, last.upto) == (reach.low, upto)


def test_a_word_that_is_everywhere_is_soon_met_on_a_walk():
    assert looked_at(0.2)[0] == (400, "walk")
    assert looked_at(0.2, found=(0,))[1] == (1600, "place")


def test_words_that_come_together_now_and_then_are_asked_for_by_their_place():
    [near, rest] = looked_at(0.06, 0.06)

    assert near[1] == "place"
    assert 2000 < near[0] < 4000
    assert rest == (LONG - near[0], "words")


def test_where_some_were_found_near_more_are_looked_for_by_place_for_as_many_as_are_wanted():
    [near, then, rest] = looked_at(0.06, 0.06, found=(10,))

    assert then == (2 * near[0], "place")
    assert rest == (LONG - near[0] - then[0], "words")


def test_where_few_were_found_near_as_many_places_are_asked_for_as_the_index_soon_tells():
    [near, then, rest] = looked_at(0.066, 0.066, found=(2,))

    assert 2 * 9 * near[0] > then[0] == first_look._MOST_BY_PLACE >= 9 * near[0]
    assert then[1] == "place"
    assert rest == (LONG - near[0] - then[0], "words")


def test_where_none_or_hardly_any_was_found_near_the_words_alone_lead_to_the_rest():
    assert [way for _, way in looked_at(0.06, 0.06, found=(0,))] == ["place", "words"]
    assert [way for _, way in looked_at(0.06, 0.06, found=(1,))] == ["place", "words"]


def test_one_word_without_a_count_is_looked_for_nearby_where_many_texts_may_hold_it():
    assert looked_at(0)[0] == (4000, "place")
    assert looked_at(0, rows=30_000) == [(30_000, "words")]


def test_several_words_without_a_count_hardly_ever_come_together_and_are_looked_for_everywhere():
    assert looked_at(0, 0) == [(LONG, "words")]


def test_among_several_conversations_nothing_is_asked_for_by_its_place_in_one():
    how, reach = every_word_of(0.06, 0.06), reach_of(LONG, conversation_id=None)

    near, rest = stretches(how, reach, high=LONG, limit=LIMIT)

    assert not near.by_place
    assert farther(near, rest, how, reach, found=10, wanted=10) == [rest]
