"""What a database holds, in one hash: equal for a copy, and for nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import psycopg

# A head seals a conversation's messages, the hashes of summaries their texts and lineage.
_CONVERSATIONS = """
    SELECT w.name, c.session_id, c.next_seq - 1, encode(c.chain_head, 'hex'), count(s.summary_id),
           encode(sha256(coalesce(string_agg(s.summary_hash, ''::bytea ORDER BY s.summary_id), '')), 'hex')
    FROM conversations c JOIN workspaces w USING (workspace_id) LEFT JOIN summaries s USING (conversation_id)
    GROUP BY c.conversation_id, w.workspace_id
    ORDER BY w.name COLLATE "C", c.session_id COLLATE "C"
"""
_FILES = """
    SELECT storage_uri, encode(min(content_hash), 'hex') FROM large_files WHERE erased_by_id IS NULL
    GROUP BY storage_uri ORDER BY storage_uri COLLATE "C"
"""
PORTION = 1_000


@dataclass(frozen=True)
class Holdings:
    """How much a database holds, and the hash of it all."""

    conversations: int
    messages: int
    summaries: int
    files: int
    digest: str


def holdings(database: psycopg.Connection[Any]) -> Holdings:
    """Of what the connection sees; memory stays flat. The connection is left in the transaction it was in."""
    digest = hashlib.sha256()
    conversations = messages = summaries = files = 0
    with database.transaction():
        with database.cursor(name="lcm_conversations") as cursor:
            for row in cursor.execute(_CONVERSATIONS):
                digest.update(_line(row))
                conversations += 1
                messages += row[2]
                summaries += row[4]
        with database.cursor(name="lcm_files") as cursor:
            for row in cursor.execute(_FILES):
                digest.update(_line(row))
                files += 1
    return Holdings(
        conversations=conversations, messages=messages, summaries=summaries, files=files, digest=digest.hexdigest()
    )


def stored_files(database: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Where the bytes of files lie in the storage, with the SHA-256 that they must have."""
    return database.execute(_FILES).fetchall()


def _line(row: tuple[Any, ...]) -> bytes:
    return json.dumps(row).encode("ascii") + b"\n"
