"""The floor of reading: the texts of a context, of a summary's sources, of a whole history, in plain prepared SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.benchmarks.floor import SQL, Floor


class ReadingFloor(Floor):
    """A connection that reads with nothing in between."""

    def assemble(self, conversation_id: int, *, budget: int, items: int) -> int:
        """The texts of so many of the newest items, as far as they fit; their tokens."""
        tokens = 0
        for row in self.rows("newest_items", (conversation_id, items)):
            if tokens + row[1] > budget:
                break
            tokens += row[1]
        return tokens

    def expand_summaries(self, summary_id: str) -> None:
        self.rows("summary", (summary_id,))
        self.rows("sources", (summary_id,))

    def expand_messages(self, summary_id: str, *, messages: int) -> None:
        self.rows("summary", (summary_id,))
        found = self.rows("messages", (summary_id, messages))
        self.rows("parts", ([row[0] for row in found],))

    def describe(self, summary_id: str) -> None:
        self.rows("summary", (summary_id,))
        self.rows("links", {"id": summary_id})

    def everything(self, summary_id: str) -> Iterator[tuple[Any, ...]]:
        """Every message below a summary, oldest first, without its parts."""
        with self.connection.transaction(), self.connection.cursor(name="everything") as cursor:
            cursor.itersize = 2000
            yield from cursor.execute(SQL["everything"], (summary_id,))
