"""Goals 5, 6 and 7: grep in one long conversation, by words from common to rare, newest or best first, and by regex."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from retrieval.engine import RetrievalEngine
from tests.benchmarks.corpus import needle
from tests.benchmarks.ingest import Pair, a_store
from tests.benchmarks.measure import Duel, by_passes
from tests.benchmarks.reading_floor import ReadingFloor
from tests.benchmarks.report import Goal, Line, at_most

HITS = 20
QUERIES = 20
# Each query is timed so often, and a pattern as often as makes a median.
PASSES, PATTERN_PASSES = 5, 15
FEWEST = 4
MOST_TERMS = 3
RARE = range(3, 13)

_BY_RANK = """
    SELECT m.message_id, m.seq, m.content, ts_rank_cd(m.content_tsv, asked) AS rank
    FROM messages m, websearch_to_tsquery('english', %s) AS asked
    WHERE m.conversation_id = %s AND m.content_tsv @@ asked ORDER BY rank DESC, m.seq DESC LIMIT %s
"""
_NEWEST = """
    SELECT m.message_id, m.seq, m.content FROM messages m, websearch_to_tsquery('english', %s) AS asked
    WHERE m.conversation_id = %s AND m.content_tsv @@ asked ORDER BY m.seq DESC LIMIT %s
"""
_BY_PATTERN = """
    SELECT message_id, seq, content FROM messages
    WHERE conversation_id = %s AND content ~* %s ORDER BY seq DESC LIMIT %s
"""
# Only what is its own lexeme: a stem that is stemmed once more, as a query is, is another word, and mostly nobody's.
_HOW_MANY_HOLD = """
    SELECT word, ndoc FROM ts_stat(%s)
    WHERE word ~ '^[a-z./]+$' AND tsvector_to_array(to_tsvector('english', word)) = ARRAY[word]
"""
_WORDS_OF = "SELECT tsvector_to_array(content_tsv) FROM messages WHERE conversation_id = %s AND seq = ANY(%s)"


# Queries, by how common their words are and how many these are.
Cells = dict[tuple[str, int], list[str]]


def searched(size: int, pair: Pair, cells: Cells) -> list[Line]:
    """Search our conversation of this size."""
    engine = RetrievalEngine.from_settings(a_store().scope)
    floor = ReadingFloor()
    where = {"conversation_id": pair.ours, "limit": HITS}
    lines = []
    for (band, terms), queries in cells.items():
        found = by_passes(
            floor=lambda query: floor.rows(_NEWEST, (query, pair.ours, HITS)),
            ours=lambda query: engine.grep(query=query, sort="recency", **where),
            pieces=queries,
            passes=PASSES,
        )
        work = f"newest first, {terms} {band} at {size:,}"
        lines += _p50_and_p95("5", work, found, at_most(newest_within(terms), " ms"), at_most(15, " ms"))
    for band in dict.fromkeys(band for band, _ in cells):
        found = by_passes(
            floor=lambda query: floor.rows(_BY_RANK, (query, pair.ours, HITS)),
            ours=lambda query: engine.grep(query=query, **where),
            pieces=queries_of(band, cells),
            passes=PASSES,
        )
        lines += _p50_and_p95("6", f"grep {band} words at {size:,}", found, at_most(18, " ms"), at_most(40, " ms"))
    for kind, (pattern, goal) in patterns(size).items():
        found = by_passes(
            floor=lambda pattern: floor.rows(_BY_PATTERN, (pair.ours, pattern, HITS)),
            ours=lambda pattern: engine.grep(query=pattern, mode="regex", **where),
            pieces=[pattern],
            passes=PATTERN_PASSES,
        )
        lines.append(_line("7", f"regex, {kind}, at {size:,}, p50", found, lambda laps: laps.cost, goal))
    return lines


def newest_within(terms: int) -> float:
    """Milliseconds for the newest first: one word, or several that have to come together."""
    return 3 if terms == 1 else 6


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
    floor = ReadingFloor()
    bands = {
        "common": range(size // 25, size // 5),
        "medium": range(max(13, size // 500), size // 100),
        "rare": RARE,
    }
    statement = f"SELECT content_tsv FROM messages WHERE conversation_id = {pair.ours}"
    holding = dict(floor.rows(_HOW_MANY_HOLD, (statement,)))
    random = Random(7)
    some = random.sample(range(1, size + 1), min(size, 4000))
    messages = [words for (words,) in floor.rows(_WORDS_OF, (pair.ours, some))]
    cells = {
        (band, terms): _take(QUERIES, _together(messages, holding, how_many, terms, random))
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


def _take(count: int, queries: Iterator[str]) -> list[str]:
    return [query for query, _ in zip(queries, range(count), strict=False)]


def _p50_and_p95(number: str, work: str, found: Duel, p50: Goal, p95: Goal) -> list[Line]:
    return [
        _line(number, f"{work}, p50", found, lambda laps: laps.cost, p50),
        _line(number, f"{work}, p95", found, lambda laps: laps.cost_at(0.95), p95),
    ]


def _line(number: str, work: str, found: Duel, cost: Callable[[Any], float], goal: Goal | None) -> Line:
    floor, ours = 1000 * cost(found.floor), 1000 * cost(found.ours)
    return Line(number, work, floor=floor, ours=ours, unit="ms", ratio=floor / ours, goal=goal)
