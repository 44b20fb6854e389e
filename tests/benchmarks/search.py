"""Goals 5, 6 and 7: grep in one long conversation, by words from common to rare, newest or best first, and by regex."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

from retrieval.engine import RetrievalEngine
from tests.benchmarks.corpus import needle
from tests.benchmarks.floor import Floor
from tests.benchmarks.ingest import Pair, a_store
from tests.benchmarks.measure import Duel, by_passes
from tests.benchmarks.report import Goal, Line, at_most, milliseconds

HITS = 20
QUERIES = 20
# Each query is timed so often, and a pattern as often as makes a median.
PASSES, PATTERN_PASSES = 5, 15
FEWEST = 4
MOST_TERMS = 3
RARE = range(3, 13)

# Queries, by how common their words are and how many these are.
Cells = dict[tuple[str, int], list[str]]


def searched(size: int, pair: Pair, cells: Cells, *, of: str = "") -> list[Line]:
    """Search our conversation of this size; `of` says of what messages, if not of the usual ones."""
    engine = RetrievalEngine.from_settings(a_store().scope)
    floor = Floor()
    where = {"conversation_id": pair.ours, "limit": HITS}
    lines = []
    for (band, terms), queries in cells.items():
        found = by_passes(
            floor=lambda query: floor.rows("newest_matches", (query, pair.ours, HITS)),
            ours=lambda query: engine.grep(query=query, sort="recency", **where),
            pieces=queries,
            passes=PASSES,
        )
        work = f"newest first, {terms} {band} at {size:,}{of}"
        lines += _p50_and_p95("5", work, found, 3 if terms == 1 else 6, 15)
    for band in dict.fromkeys(band for band, _ in cells):
        found = by_passes(
            floor=lambda query: floor.rows("best_matches", (query, pair.ours, HITS)),
            ours=lambda query: engine.grep(query=query, **where),
            pieces=queries_of(band, cells),
            passes=PASSES,
        )
        lines += _p50_and_p95("6", f"grep {band} words at {size:,}{of}", found, 18, 40)
    for kind, (pattern, goal) in patterns(size).items():
        found = by_passes(
            floor=lambda pattern: floor.rows("matches_of_pattern", (pair.ours, pattern, HITS)),
            ours=lambda pattern: engine.grep(query=pattern, mode="regex", **where),
            pieces=[pattern],
            passes=PATTERN_PASSES,
        )
        lines.append(milliseconds("7", f"regex, {kind}, at {size:,}{of}, p50", found, goal))
    return lines


def queries_of(band: str, cells: Cells) -> list[str]:
    """Those of any number of words that are so common."""
    return [query for (each, _), queries in cells.items() if each == band for query in queries]


def patterns(size: int) -> dict[str, tuple[str, Goal | None]]:
    """A regular expression of each kind, with the goal for its p50."""
    half = needle(1, 1009 * max(1, size // 2018))[:-4]
    return {
        "frequent": (r"request=[0-9a-f]{8}", at_most(4, " ms")),
        "a rare literal": (rf"{half}[0-9a-f]+", at_most(150, " ms")),
        "nothing literal": (r"\b[0-9]{6}\b", None),
    }


def queries_for(size: int, pair: Pair) -> Cells:
    """Queries of words that stand together in some message, by how many messages hold each word and how many they are.

    A cell for which the history has hardly any is left out.
    """
    floor = Floor()
    bands = {"common": range(size // 25, size // 5), "medium": range(max(13, size // 500), size // 100), "rare": RARE}
    statement = f"SELECT content_tsv FROM messages WHERE conversation_id = {pair.ours}"
    holding = dict(floor.rows("holders_of_words", (statement,)))
    random = Random(7)
    some = random.sample(range(1, size + 1), min(size, 4000))
    messages = [words for (words,) in floor.rows("words_of", (pair.ours, some))]
    cells = {
        (band, terms): list(islice(_together(messages, holding, how_many, terms, random), QUERIES))
        for band, how_many in bands.items()
        for terms in range(1, MOST_TERMS + 1)
    }
    return {cell: queries for cell, queries in cells.items() if len(queries) >= FEWEST}


def _together(
    messages: list[list[str]], holding: dict[str, int], how_many: range, terms: int, random: Random
) -> Iterator[str]:
    are_rare = how_many == RARE
    for words in messages:
        # What is rare in such a history are the paths of its files; of what is common they are no example.
        fitting = sorted(word for word in words if holding.get(word, 0) in how_many and (word.isalpha() or are_rare))
        if len(fitting) >= terms:
            yield " ".join(random.sample(fitting, terms))


def _p50_and_p95(number: str, work: str, found: Duel, p50: float, p95: float) -> list[Line]:
    return [
        milliseconds(number, f"{work}, p50", found, at_most(p50, " ms")),
        milliseconds(number, f"{work}, p95", found, at_most(p95, " ms"), share=0.95),
    ]
