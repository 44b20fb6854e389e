"""Where messages that hold some words are looked for, so that the newest are found soon."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval.search.query_plan import Plan
from retrieval.search.reach import Reach

# A walk looks at so many rows at least, if it promises anything; what it has not found among them, or among many times
# as many as should have been enough, is clustered elsewhere, and the index has it.
_WALKED, _MANY_TIMES = 5000, 4
# So few rows that to walk past them tells sooner than any figures whether words come together.
_AT_ONCE = 500
# To fetch so few rows, whosever they are, takes less time than to begin with the newest.
_FEW = 300
# In so many of the newest, a word that is in one text of five hundred is found often enough.
_UNCOUNTED = 10_000
# Rows that the index picks out take long to be asked for more than words; of so many, a walk is sooner done.
_MANY = 1500


@dataclass(frozen=True)
class Stretch:
    """The messages behind one place and up to another, to be found by a walk or by an index.

    `by_words_alone`: by no index but that for words. `by_place`: it is asked for these places, too.
    """

    after: int
    upto: int
    walks: bool
    by_words_alone: bool
    by_place: bool = False


def stretches(how: Plan, reach: Reach, *, high: int, limit: int) -> list[Stretch]:
    """Where to look for the newest up to `high`, one after the other, until there are `limit` of them.

    What is near by a walk or by an index, whichever is sooner done; then the rest, if there is any.
    """
    walks, looked_at = _first_look(how, reach, limit)
    after = reach.low if looked_at is None else max(reach.low, high - looked_at)
    if after <= reach.low:
        return [Stretch(after, high, walks, how.by_words_alone and not walks)]
    # What is near is found by its place, at least as well as by its words.
    by_place = reach.is_one_conversation and not walks
    near = Stretch(after, high, walks, by_words_alone=by_place, by_place=by_place)
    return [near, Stretch(reach.low, after, walks=False, by_words_alone=how.by_words_alone)]


def _first_look(how: Plan, reach: Reach, limit: int) -> tuple[bool, int | None]:
    """Whether to walk back from the newest, and how many places to look at, by either way, before the rest."""
    share = how.expected_share()
    if reach.of_tools is not None:
        return False, None
    if reach.picks_among_messages:
        # What criteria pick is spread as words are: to ask them of every row that the index gives takes longest.
        return how.greatest_share() * reach.rows > _MANY, None
    # Among several conversations, the places between are those of others.
    apart = max(1.0, (reach.high - reach.low) / max(1, reach.rows))
    if not share:
        # Too rare to be counted, one word may still be in thousands of texts; several hardly ever are.
        is_worth_a_look = len(how.lexemes) == 1 and reach.rows > _MANY_TIMES * _UNCOUNTED
        return False, int(_UNCOUNTED * apart) if is_worth_a_look else None
    enough, to_collect = limit / share * apart, how.rows_worth_collecting()
    # Twice, because words mostly come in clusters, and a walk in vain is followed by the index.
    if 2 * enough <= to_collect:
        # What half of that time has not shown comes together more seldom than was thought: the index soon has it all.
        return True, int(min(to_collect / 2, max(_WALKED, _MANY_TIMES * enough)))
    if limit / how.greatest_share() * apart <= _AT_ONCE <= to_collect:
        # These words may come together more often than others do.
        return True, _AT_ONCE
    return False, int(2 * enough) if how.expected_by_index() > _FEW else None
