"""Beside SQLite, in which other memories keep their histories: a file with an index of its words (FTS5).

One row a message, and its words; no parts, no context, no hashes, no tokens, nobody else's workspace, and one writer at
a time. docs/figures.md says what it is quicker at, and why a server is the better bargain.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings

from retrieval.engine import RetrievalEngine
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.floor import Row, rows_of
from tests.benchmarks.ingest import BATCH, SINGLES_IN_A_LAP, Pair, a_store
from tests.benchmarks.measure import blocks, by_passes, duel
from tests.benchmarks.report import Line, milliseconds, rates
from tests.benchmarks.search import HITS, Cells, queries_of

THERE_BEFORE = 1_000
SINGLES = 600
BATCHES = 30

_TABLES = """
    CREATE TABLE messages (
        message_id INTEGER PRIMARY KEY, role TEXT NOT NULL, content TEXT NOT NULL, token_count INTEGER NOT NULL,
        created_at TEXT NOT NULL
    );
    CREATE VIRTUAL TABLE texts USING fts5(
        content, content = messages, content_rowid = message_id, tokenize = 'porter unicode61'
    );
    CREATE TRIGGER searchable AFTER INSERT ON messages BEGIN
        INSERT INTO texts (rowid, content) VALUES (new.message_id, new.content);
    END;
"""
_APPEND = "INSERT INTO messages (role, content, token_count, created_at) VALUES (?, ?, ?, ?)"
_FOUND = "SELECT rowid, snippet(texts, 0, '**', '**', '...', 32) FROM texts WHERE texts MATCH ? ORDER BY {} LIMIT ?"
NEWEST, BEST = _FOUND.format("rowid DESC"), _FOUND.format("rank")


@dataclass(frozen=True)
class Sqlite:
    """One file with one history."""

    connection: sqlite3.Connection

    def append(self, rows: Iterable[Row]) -> None:
        """All of them, in one transaction."""
        with self.connection:
            self.connection.executemany(
                _APPEND, [(row.role, row.content, row.token_count, row.created_at.isoformat()) for row in rows]
            )

    def found(self, statement: str, query: str) -> list[Any]:
        """The hits of all words, with snippets."""
        words = " ".join(f'"{word}"' for word in query.split())
        return self.connection.execute(statement, (words, HITS)).fetchall()


@contextmanager
def a_history() -> Iterator[Sqlite]:
    """An empty one, on the disk that our database is on."""
    disk = settings.DATA_DIR if settings.EMBEDDED_DATABASE else None
    with tempfile.TemporaryDirectory(dir=disk) as directory:
        connection = sqlite3.connect(Path(directory) / "history.sqlite")
        try:
            connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {_TABLES}")
            yield Sqlite(connection)
        finally:
            connection.close()


def appended() -> list[Line]:
    """Goals 1 and 2 beside SQLite."""
    store, pair = a_store(), Pair.opened("beside SQLite")
    corpus = iter(Corpus(THERE_BEFORE + SINGLES + BATCHES * BATCH, seed=6))

    def append(*batches: Sequence[Any]) -> None:
        for batch in batches:
            store.append_messages(conversation_id=pair.ours, messages=batch)

    with a_history() as sqlite:
        before = list(islice(corpus, THERE_BEFORE))
        append(before)
        sqlite.append(rows_of(before))
        one = duel(
            floor=lambda rows: [sqlite.append([row]) for row in rows],
            ours=lambda messages: append(*([message] for message in messages)),
            work=((rows_of(block), block) for block in blocks(islice(corpus, SINGLES), SINGLES_IN_A_LAP)),
        )
        many = duel(floor=sqlite.append, ours=append, work=((rows_of(block), block) for block in blocks(corpus, BATCH)))
    return [rates("1", "append one; floor: SQLite", one), rates("2", f"append {BATCH}; floor: SQLite", many)]


def searched(size: int, pair: Pair, cells: Cells) -> list[Line]:
    """Goals 5 and 6 beside SQLite: our conversation of this size, and a file with the same messages."""
    engine = RetrievalEngine.from_settings(a_store().scope)
    lines = []
    with a_history() as sqlite:
        for block in blocks(Corpus(size), 1000):
            sqlite.append(rows_of(block))
        for number, sort, statement, work in (
            ("5", "recency", NEWEST, "newest first"),
            ("6", "relevance", BEST, "by relevance"),
        ):
            for band in dict.fromkeys(band for band, _ in cells):
                found = by_passes(
                    floor=lambda query, statement=statement: sqlite.found(statement, query),
                    ours=lambda query, sort=sort: engine.grep(
                        query=query, sort=sort, conversation_id=pair.ours, limit=HITS
                    ),
                    pieces=queries_of(band, cells),
                    passes=1,
                )
                work_here = f"{band} words, {work}, at {size:,}, p50; floor: SQLite"
                lines.append(milliseconds(number, work_here, found))
    return lines
