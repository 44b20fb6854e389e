"""The plain search of the specification's store: rows that hold all the words, ranked by PostgreSQL itself.

What users search with is `retrieval.RetrievalEngine.grep`, which relaxes, ranks with context and shows snippets.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from conversations.content.lossless_values import is_storable
from conversations.errors import Invalid
from conversations.models import Message, Summary
from conversations.models.querysets import SearchableQuerySet
from conversations.store.base import Store
from conversations.types import Role, SummaryKind

MOST_RESULTS = 1000


@dataclass(frozen=True)
class MessageSearchResult:
    """A message that holds what was searched for, and how well."""

    message_id: int
    conversation_id: int
    seq: int
    role: Role
    token_count: int
    created_at: datetime
    rank: float


@dataclass(frozen=True)
class SummarySearchResult:
    """A summary that holds what was searched for, and how well."""

    summary_id: str
    conversation_id: int
    kind: SummaryKind
    depth: int
    first_seq: int
    last_seq: int
    token_count: int
    created_at: datetime
    rank: float


@dataclass(frozen=True)
class SearchStore(Store):
    def search_messages(
        self, *, query: str, conversation_id: int | None = None, limit: int = 20
    ) -> list[MessageSearchResult]:
        """Messages that answer a websearch query, best first, of equals the newest; NotFound, Invalid."""
        found = self._found(Message.objects.all(), query, conversation_id, limit)
        return [
            MessageSearchResult(
                message_id=message.message_id,
                conversation_id=message.conversation_id,
                seq=message.seq,
                role=Role(message.role),
                token_count=message.token_count,
                created_at=message.created_at,
                rank=message.rank,
            )
            for message in found.order_by("-rank", "-message_id").only(*_MESSAGE_COLUMNS)[:limit]
        ]

    def search_summaries(
        self, *, query: str, conversation_id: int | None = None, limit: int = 20
    ) -> list[SummarySearchResult]:
        """Summaries that answer a websearch query, best first, of equals those of the newest history."""
        found = self._found(Summary.objects.all(), query, conversation_id, limit)
        return [
            SummarySearchResult(
                summary_id=summary.summary_id,
                conversation_id=summary.conversation_id,
                kind=SummaryKind(summary.kind),
                depth=summary.depth,
                first_seq=summary.first_seq,
                last_seq=summary.last_seq,
                token_count=summary.token_count,
                created_at=summary.created_at,
                rank=summary.rank,
            )
            for summary in found.order_by("-rank", "-last_seq", "summary_id").only(*_SUMMARY_COLUMNS)[:limit]
        ]

    def _found(
        self, rows: SearchableQuerySet, query: str, conversation_id: int | None, limit: int
    ) -> SearchableQuerySet:
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_RESULTS:
            raise Invalid(f"limit: {str(limit)[:80]!r} is not a whole number from 1 to {MOST_RESULTS}.")
        if not isinstance(query, str) or not is_storable(query):
            raise Invalid("query: no text holds a NUL or a lone surrogate, so it cannot be searched for.")
        if conversation_id is not None:
            rows = rows.filter(conversation_id=self.scope.conversation(conversation_id).pk)
        return cast(SearchableQuerySet, self.scope.narrow(rows.matching(query)))


_MESSAGE_COLUMNS = ("message_id", "conversation_id", "seq", "role", "token_count", "created_at")
_SUMMARY_COLUMNS = (
    "summary_id", "conversation_id", "kind", "depth", "first_seq", "last_seq", "token_count", "created_at"
)  # fmt: skip
