"""What the index for words is good for, by what PostgreSQL has counted. Pure.

It gives rows of one conversation or of all, in the order of nothing, and passes through its entries for a word. What
that takes is compared in entries passed; the proportions were measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# PostgreSQL's own guess for a word that it has no count of; mostly far too high.
_UNCOUNTED = 0.005
# To fetch a row that the index gives takes about as long as to pass so many entries of the index that tells which rows
# are of one conversation; or where the index for words tells it, which passes by most of them, so many of that. There,
# to ask it of an entry for a word takes as long as to pass so many.
_ENTRIES_A_ROW, _PLACES_A_ROW, _PLACES_AN_ENTRY = 40, 100, 20
# To fetch a row and to check its words takes about as long as to pass so many entries for a word.
_ENTRIES_A_CHECK = 800
# To look at a row of a walk, the newest first, takes as long as to pass so many entries for a word, and a little less
# than to fetch a row from anywhere.
_ENTRIES_A_STEP, _STEPS_A_ROW = 24, 1.2
# Of a table that had fewer rows when they were last counted, no plan is kept: by now there may be a better one.
_FEWEST_FOR_A_PLAN = 1000
# A word in fewer texts than this leaves out so many that the index is asked for it in any case.
_EVERYWHERE = 0.2


@dataclass(frozen=True)
class WordIndex:
    """The share of the rows that hold a lexeme, for those that the statistics know; any other is rare.

    `everywhere`: how many rows the index covers; below 0 before anything was counted. `of_one`: how many of these are
    of the one conversation that is asked for, all of it; it tells them from all others, if it is asked to.
    """

    frequencies: Mapping[str, float]
    everywhere: float
    of_one: int | None = None

    @property
    def is_settled(self) -> bool:
        """Whether a plan by which rows are found now will be as good when there are more."""
        return self.everywhere >= _FEWEST_FOR_A_PLAN

    def share(self, lexeme: str) -> float:
        return self.frequencies.get(lexeme, _UNCOUNTED)

    def share_of_all(self, lexemes: Iterable[str]) -> float:
        """Which share of the rows holds all of these at once."""
        return together(map(self.share, lexemes))

    def unasked(self, lexemes: Sequence[str]) -> frozenset[str]:
        """Of lexemes that stand together, those that are nearly everywhere and would be long to pass through.

        The others lead to so few rows within reach that it is sooner found out which of these hold the rest.
        """
        common = frozenset(each for each in lexemes if self.share(each) >= _EVERYWHERE)
        checks = self.share_of_all(each for each in lexemes if each not in common) * _ENTRIES_A_CHECK
        if self.of_one is not None:
            checks *= min(1.0, self.of_one / max(1.0, self.everywhere))
        return common if len(common) < len(lexemes) and checks < sum(map(self.share, common)) else frozenset()

    def is_enough(self, share: float, *, asked: float, rows: int) -> bool:
        """Whether the rows of others that hold such a share take less time than to tell which are within reach.

        The rows of one conversation need not be listed: of which it is can be asked of each entry for the rarest word,
        such a share of all. The planner thinks otherwise, for it takes every row for one that has to come from a disk.
        """
        of_others = share * self.everywhere * (1 - min(1.0, rows / max(1.0, self.everywhere)))
        if self.of_one is None:
            told = rows / _ENTRIES_A_ROW
        else:
            told = min(rows, asked * self.everywhere * _PLACES_AN_ENTRY) / _PLACES_A_ROW
        return self.everywhere >= 0 and of_others < told

    def rows_in_the_time(self, *, entries: float, found: float) -> float:
        """How many rows a walk passes while such a share of all rows is looked up, and so many are fetched."""
        return max(0.0, self.everywhere) * entries / _ENTRIES_A_STEP + found * _STEPS_A_ROW


def together(shares: Iterable[float]) -> float:
    """Which share of the rows has all of what these shares have.

    Words come together more often than by chance, so each further one counts by its root, and the root of that.
    """
    share = 1.0
    for place, each in enumerate(sorted(shares)):
        share *= each ** (0.5**place)
    return share
