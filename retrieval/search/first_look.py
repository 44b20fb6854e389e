"""Where messages that hold some words are looked for, so that the newest are found soon."""

from __future__ import annotations

from dataclasses import dataclass, replace

from retrieval.search.filters import Reach
from retrieval.search.query.compiled_query import Plan

# A walk looks at many times as many rows as should be enough, and among several conversations at so many at least; what
# it has not found among them is clustered elsewhere, and the index has it.
_MANY_TIMES, _WALKED = 4, 5000
# So few rows that to walk past them tells sooner than any figures whether words come together.
_AT_ONCE = 500
# To fetch so few rows, whosever they are, takes less time than to begin with the newest.
_FEW = 300
# In so many of the newest, a word that is in one text of two hundred is found often enough.
_UNCOUNTED = 4000
# Rows that the index picks out take long to be asked for more than words; of so many, a walk is sooner done.
_MANY = 1500
# In one conversation, so few rows are sooner walked past than asked for by their place.
_SOON = 550
# What the index is asked for by place takes it a 25th of the time of a walk past as many rows; of more than so many,
# it is asked for all there are (`Reach.between`).
_PLACES_A_STEP, _MOST_BY_PLACE = 25, 39_000


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
    near = Stretch(after, high, walks, by_words_alone=False) if walks else _near(reach, after, high)
    return [near, Stretch(reach.low, after, walks=False, by_words_alone=how.by_words_alone)]


def farther(near: Stretch, rest: Stretch, how: Plan, reach: Reach, *, found: int, wanted: int) -> list[Stretch]:
    """Where to look after a stretch in which so many were found, and so many more are wanted.

    If they go on to be as many, some more by their place are mostly enough; then the rest, if there is any.
    """
    looked_at = near.upto - near.after
    most = int(_most_by_place(how))
    enough = wanted * looked_at // found if found else _MANY_TIMES * looked_at
    # Words come in clusters: up to twice as much is looked at as should be enough.
    size = max(looked_at, min(2 * enough, most) if found else enough)
    after = rest.upto - size
    goes_on = (found > 0 or (near.walks and len(how.lexemes) == 1)) and not _are_few(how, reach)
    if goes_on and reach.is_one_conversation and max(enough, size) <= most and after > rest.after:
        return [_near(reach, after, rest.upto), replace(rest, upto=after)]
    return [rest]


def _near(reach: Reach, after: int, upto: int) -> Stretch:
    """What the index has of the newest: found by their place where they have one, at least as well as by the words."""
    by_place = reach.is_one_conversation
    return Stretch(after, upto, walks=False, by_words_alone=by_place, by_place=by_place)


def _first_look(how: Plan, reach: Reach, limit: int) -> tuple[bool, int | None]:
    """Whether to walk back from the newest, and how many places to look at, by either way, before the rest."""
    share = how.expected_share
    if reach.of_tools is not None:
        return False, None
    if reach.picks_among_messages:
        # What criteria pick is spread as words are: to ask them of every row that the index gives takes longest.
        return how.greatest_share * reach.rows > _MANY, None
    # Among several conversations, the places between are those of others.
    apart = max(1.0, (reach.high - reach.low) / max(1, reach.rows))
    if not share:
        # Too rare to be counted, one word may still be in thousands of texts; several hardly ever are.
        return False, None if _are_few(how, reach) else int(_UNCOUNTED * apart)
    enough, to_collect = limit / share * apart, how.rows_worth_collecting()
    at_best = limit / how.greatest_share * apart
    # Twice, because words mostly come in clusters, and what was looked at in vain is followed by the index.
    if reach.is_one_conversation:
        if enough <= _SOON and 2 * enough <= to_collect:
            return True, int(_MANY_TIMES * enough)
        if _are_few(how, reach):
            return False, None
        if 2 * enough <= _most_by_place(how):
            return False, int(2 * enough)
        # These words may come together more often than others do.
        return False, _AT_ONCE if at_best <= _AT_ONCE else None
    if 2 * enough <= to_collect:
        # What half of that time has not shown comes together more seldom than was thought: the index soon has it all.
        return True, int(min(to_collect / 2, max(_WALKED, _MANY_TIMES * enough)))
    if at_best <= _AT_ONCE <= to_collect:
        return True, _AT_ONCE
    return False, None if _are_few(how, reach) else int(2 * enough)


def _are_few(how: Plan, reach: Reach) -> bool:
    """Whether the words alone lead to few rows; of those without a count, as far as one may suppose."""
    return (how.expected_by_index() or how.supposed_share * reach.rows) <= _FEW


def _most_by_place(how: Plan) -> float:
    """How many rows may be asked for by their place in half the time that the words alone would take."""
    if not how.expected_share:
        return _MOST_BY_PLACE
    return min(_MOST_BY_PLACE, _PLACES_A_STEP * how.rows_worth_collecting() / 2)
