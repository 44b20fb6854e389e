"""Pages that end by their bytes: how many rows fit is asked of the database before any of them is read.

Rows that came before the bounds of what may be appended can be of any size, and a page of them would fill the memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from conversations.sql import rows

T = TypeVar("T")

# A page has more only where its first row alone is larger.
MOST_PAGE_BYTES = 8 * 1024**2
# What a row takes besides its texts: names of fields, ids, hashes.
_MESSAGE_BYTES = 600
_PART_BYTES = 150
_CONVERSATION_BYTES = 500


class Page(list[T]):
    """The rows of one page. With `more`, it ended before its limit; the list goes on behind its last row."""

    def __init__(self, found: Iterable[T] = (), *, more: bool = False) -> None:
        super().__init__(found)
        self.more = more


def _json(column: str) -> str:
    # A small value is not compressed, and to write it out only to measure it takes time.
    size = f"pg_column_size({column})"
    return f"CASE WHEN {size} > 1024 THEN octet_length({column}::text) ELSE coalesce({size}, 0) END"


def _text(column: str) -> str:
    return f"coalesce(octet_length({column}), 0)"


_OF_MESSAGE = " + ".join([_text("m.content"), _json("m.metadata"), _json("m.exact"), str(_MESSAGE_BYTES)])
_OF_PART = " + ".join(
    [
        *(_text(f"p.{each}") for each in ("text_content", "tool_output", "tool_error", "file_url", "subtask_prompt")),
        *(_text(f"p.{each}") for each in ("tool_title", "subtask_desc", "step_reason", "snapshot_hash")),
        *(_json(f"p.{each}") for each in ("tool_input", "metadata", "exact", "patch_files")),
        str(_PART_BYTES),
    ]
)
# The texts of cold messages are elsewhere; their tokens say about how long they are.
_MESSAGES = f"""
    SELECT count(*), count(*) FILTER (WHERE total <= %s)
    FROM (
        SELECT sum(weight) OVER (ORDER BY seq) AS total
        FROM (
            SELECT m.seq, {_OF_MESSAGE} + CASE WHEN m.cold_block_id IS NULL THEN 0 ELSE 4 * m.token_count END
                   + coalesce((SELECT sum({_OF_PART}) FROM message_parts p WHERE p.message_id = m.message_id), 0)
                   AS weight
            FROM messages m WHERE m.conversation_id = %s AND m.seq > %s ORDER BY m.seq LIMIT %s
        ) AS weighed
    ) AS added
"""
_CONVERSATIONS = f"""
    SELECT count(*), count(*) FILTER (WHERE total <= %s)
    FROM (
        SELECT sum({_json("metadata")} + {_json("overrides")} + {_CONVERSATION_BYTES}) OVER (ORDER BY conversation_id)
               AS total
        FROM (
            SELECT conversation_id, metadata, overrides FROM conversations
            WHERE conversation_id > %s AND (%s::bigint IS NULL OR workspace_id = %s)
            ORDER BY conversation_id LIMIT %s
        ) AS listed
    ) AS added
"""


def messages_that_fit(*, conversation_id: int, after_seq: int, limit: int) -> tuple[int, bool]:
    """How many of the messages behind `after_seq` one page holds, and whether these are fewer than the limit allows."""
    return _fitting(_MESSAGES, [conversation_id, after_seq, limit])


def conversations_that_fit(*, workspace_id: int | None, after_id: int, limit: int) -> tuple[int, bool]:
    """The same of conversations behind `after_id`."""
    return _fitting(_CONVERSATIONS, [after_id, workspace_id, workspace_id, limit])


def _fitting(statement: str, values: list[Any]) -> tuple[int, bool]:
    [(there, fitting)] = rows(statement, [MOST_PAGE_BYTES, *values])
    return max(1, fitting), fitting < there and there > 1
