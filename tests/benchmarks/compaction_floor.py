"""The floor of compaction: summaries with a stub text in plain SQL, one transaction each, on our own tables.

It writes summary, links, context and counters; no run, no compaction part, and nothing is checked again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from psycopg import Connection

from conversations.types import SummaryKind
from lcmsite.connections import connect
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.floor import SQL
from tests.benchmarks.measure import Laps

LEAF_CHUNK_TOKENS = 20_000
FAN_IN = 4
TARGETS = {SummaryKind.LEAF: 600, SummaryKind.CONDENSED: 900}
FRESH_TAIL = 8


class CompactionFloor:
    """Compacts one conversation to the end; each step writes one summary."""

    def __init__(self, conversation_id: int) -> None:
        self.conversation_id = conversation_id
        self.laps = Laps()
        self.written = 0
        self.reader: Connection[Any] = connect(autocommit=False)
        self.writer: Connection[Any] = connect(autocommit=True)
        words = " ".join(message.parts[0].text_content or "" for message in Corpus(500, seed=5))
        self.texts = {kind: words[: 4 * tokens] for kind, tokens in TARGETS.items()}

    def steps(self, kind: SummaryKind) -> Iterator[None]:
        """The leaf pass, or all condensed passes."""
        if kind is SummaryKind.LEAF:
            yield from self._pass("raw_sources", kind, depth=0)
            return
        depth = 0
        while True:
            before = self.written
            yield from self._pass("summary_sources", kind, depth=depth + 1)
            if self.written == before:
                return
            depth += 1

    def _pass(self, name: str, kind: SummaryKind, *, depth: int) -> Iterator[None]:
        values = {"conversation_id": self.conversation_id, "tail": FRESH_TAIL, "depth": depth - 1}
        # Held beyond its transaction: one that stays open would keep the dead versions of every row that is updated.
        with self.reader.cursor(name="sources", withhold=True) as cursor:
            cursor.itersize = 2000
            with self.laps.lap():
                cursor.execute(SQL[name], values)
                self.reader.commit()
            rows = iter(cursor)
            while True:
                with self.laps.lap():
                    chunk, is_last = _chunk(rows, kind)
                    if len(chunk) >= (FAN_IN if kind is SummaryKind.CONDENSED else 1):
                        self._summarize(chunk, kind, depth)
                        self.written += 1
                if is_last:
                    return
                yield

    def _summarize(self, chunk: list[tuple[Any, ...]], kind: SummaryKind, depth: int) -> None:
        ordinals, ids, _, tokens, moments = zip(*chunk, strict=True)
        is_leaf = kind is SummaryKind.LEAF
        values = {
            "id": f"sum_{secrets.token_hex(8)}",
            "conversation_id": self.conversation_id,
            "kind": kind,
            "text": self.texts[kind],
            "tokens": TARGETS[kind],
            "depth": depth,
            "first": ordinals[0],
            "last": ordinals[-1],
            "since": moments[0],
            "until": moments[-1],
            "sources": len(chunk),
            "raw": len(chunk) if is_leaf else 0,
            "source_tokens": sum(tokens),
            "source_ids": list(ids),
            "hash": secrets.token_bytes(32),
        }
        with self.writer.transaction():
            links = "link_messages" if is_leaf else "link_summaries"
            for name in ("insert_summary", links, "remove_sources", "show_summary"):
                self.writer.execute(SQL[name], values, prepare=True)


def _chunk(rows: Iterator[tuple[Any, ...]], kind: SummaryKind) -> tuple[list[tuple[Any, ...]], bool]:
    """What the next summary is made from, and whether nothing comes after it."""
    chunk: list[tuple[Any, ...]] = []
    tokens = 0
    for row in rows:
        chunk.append(row)
        tokens += row[3]
        if len(chunk) == FAN_IN if kind is SummaryKind.CONDENSED else tokens >= LEAF_CHUNK_TOKENS:
            return chunk, False
    return chunk, True
