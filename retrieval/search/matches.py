"""Makes matches of what a search has found: who said it, when, where it stands now, and the piece that shows why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from conversations.reading import rows
from conversations.types import Role
from retrieval.lineage_steps import above_messages
from retrieval.search.snippets import SEARCHED
from retrieval.search.tables import FILES
from retrieval.types import ItemKind, Match, Snippet

FILE_PREFIX = "file_"

# Up to what nothing was derived from and nothing supersedes: that, too, is looked up for each.
_MESSAGES = f"""
    {above_messages("%(ids)s")}, covering AS MATERIALIZED (
        SELECT message_id, min(summary_id) AS summary_id FROM above
        WHERE NOT EXISTS (SELECT FROM summary_parents p WHERE p.parent_summary_id = above.summary_id OFFSET 0)
          AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = above.summary_id OFFSET 0)
        GROUP BY message_id
    )
    SELECT message_id, conversation_id, seq, role::text, author, created_at, token_count,
           CASE WHEN message_id = ANY(%(shown)s) THEN left(content, {{searched}}) END, covering.summary_id
    FROM messages LEFT JOIN covering USING (message_id) WHERE message_id = ANY(%(ids)s)
"""
_SUMMARIES = """
    SELECT summary_id, conversation_id, first_seq, last_seq, latest_at, token_count, depth,
           CASE WHEN summary_id = ANY(%(shown)s) THEN left(content, {searched}) END,
           NOT EXISTS (SELECT FROM summary_parents p WHERE p.parent_summary_id = summaries.summary_id OFFSET 0)
           AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = summaries.summary_id OFFSET 0)
    FROM summaries WHERE summary_id = ANY(%(ids)s)
"""
_FILES = """
    SELECT file_id, conversation_id, {seq}, created_at, file_name, {tokens},
           CASE WHEN file_id = ANY(%(shown)s) THEN left({text}, {searched}) END
    FROM large_files WHERE file_id = ANY(%(ids)s)
"""


@dataclass(frozen=True)
class Excerpt:
    """A row to be shown, with its snippet or with what makes one of its content."""

    id: int | str
    worth: float = 0.0
    snippet: Snippet | None = None
    show: Callable[[str], Snippet] | None = None

    def of(self, content: str | None) -> Snippet:
        if self.snippet is not None:
            return self.snippet
        return self.show(content or "") if self.show is not None else Snippet("", 0)


def matches(excerpts: Sequence[Excerpt]) -> tuple[Match, ...]:
    """A match for each of these rows, in the same order: one query for each kind of thing."""
    messages = [each for each in excerpts if isinstance(each.id, int)]
    files = [each for each in excerpts if isinstance(each.id, str) and each.id.startswith(FILE_PREFIX)]
    summaries = [each for each in excerpts if isinstance(each.id, str) and not each.id.startswith(FILE_PREFIX)]
    known: dict[int | str, Match] = {}
    for row, excerpt in _fetched(_MESSAGES, messages):
        known[excerpt.id] = _message(row, excerpt)
    for row, excerpt in _fetched(_SUMMARIES, summaries):
        known[excerpt.id] = _summary(row, excerpt)
    for row, excerpt in _fetched(_FILES, files):
        known[excerpt.id] = _file(row, excerpt)
    return tuple(known[each.id] for each in excerpts if each.id in known)


def _fetched(statement: str, excerpts: Sequence[Excerpt]) -> Iterable[tuple[tuple[Any, ...], Excerpt]]:
    if not excerpts:
        return []
    by_id = {each.id: each for each in excerpts}
    to_be_shown = [each.id for each in excerpts if each.snippet is None]
    fetched = rows(_with_columns(statement), {"shown": to_be_shown, "ids": list(by_id)})
    return [(row, by_id[row[0]]) for row in fetched]


@cache
def _with_columns(statement: str) -> str:
    return statement.format(searched=SEARCHED, seq=FILES.seq, tokens=FILES.tokens, text=FILES.text)


def _message(row: tuple[Any, ...], excerpt: Excerpt) -> Match:
    message_id, conversation_id, seq, role, author, created_at, token_count, content, covered_by = row
    return Match(
        id=f"msg_{message_id}",
        kind=ItemKind.MESSAGE,
        conversation_id=conversation_id,
        first_seq=seq,
        last_seq=seq,
        created_at=created_at,
        token_count=token_count,
        score=excerpt.worth,
        snippet=excerpt.of(content),
        active=covered_by is None,
        covered_by=covered_by,
        role=Role(role),
        author=author,
    )


def _summary(row: tuple[Any, ...], excerpt: Excerpt) -> Match:
    summary_id, conversation_id, first_seq, last_seq, latest_at, token_count, depth, content, active = row
    return Match(
        id=summary_id,
        kind=ItemKind.SUMMARY,
        conversation_id=conversation_id,
        first_seq=first_seq,
        last_seq=last_seq,
        created_at=latest_at,
        token_count=token_count,
        score=excerpt.worth,
        snippet=excerpt.of(content),
        active=active,
        depth=depth,
    )


def _file(row: tuple[Any, ...], excerpt: Excerpt) -> Match:
    file_id, conversation_id, seq, created_at, file_name, tokens, content = row
    return Match(
        id=file_id,
        kind=ItemKind.FILE,
        conversation_id=conversation_id,
        first_seq=seq,
        last_seq=seq,
        created_at=created_at,
        token_count=tokens,
        score=excerpt.worth,
        snippet=excerpt.of(content),
        active=False,
        file_name=file_name,
    )
