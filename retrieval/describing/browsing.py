"""List conversations with the tokens of their contexts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from django.db.models import Q, QuerySet
from pydantic import Field

from compaction.background.jobs import decide, last_outcome_of_resting
from compaction.policy import CompactionPolicy
from compaction.types import CompactionDecision
from conversations.content.lossless_values import is_storable
from conversations.models import Conversation
from conversations.sql import array, load, rows
from conversations.store.pages import with_first_prompts
from conversations.types import ConversationRecord
from retrieval.reader import Reader

# The maximum page number. Use the filter to find other conversations.
MOST_PAGES = 10_000

_SQL = load("retrieval/describe.sql")


class BrowseSort(StrEnum):
    """How conversations are sorted: by title from A to Z, by all others descending."""

    UPDATED = "updated"
    ACTIVE_TOKENS = "active_tokens"
    MESSAGES = "messages"
    TITLE = "title"
    COLD_MESSAGES = "cold_messages"


_ORDER = {
    BrowseSort.UPDATED: ("-updated_at", "-conversation_id"),
    BrowseSort.ACTIVE_TOKENS: ("-active_tokens", "-conversation_id"),
    BrowseSort.MESSAGES: ("-next_seq", "-conversation_id"),
    BrowseSort.TITLE: ("title", "session_id", "conversation_id"),
    BrowseSort.COLD_MESSAGES: ("-cold_messages", "-conversation_id"),
}


@dataclass(frozen=True)
class ConversationOverview:
    """A conversation with its context's tokens; under pressure: compaction is due."""

    conversation: ConversationRecord
    system_tokens: int
    summary_tokens: int
    summaries: int
    threshold_tokens: int
    budget: int
    is_under_pressure: bool

    @property
    def raw_tokens(self) -> int:
        return max(0, self.conversation.counters.active_tokens - self.summary_tokens - self.system_tokens)


@dataclass(frozen=True)
class ConversationPage:
    """One page of conversations; `total` is the number of conversations on all pages."""

    conversations: Annotated[tuple[ConversationOverview, ...], Field(serialization_alias="items")]
    total: int
    page: int
    limit: int
    next_page: Annotated[int | None, Field(exclude=True)] = None
    next_cursor: str | None = None


@dataclass(frozen=True)
class ConversationBrowser(Reader):
    """Lists conversations."""

    def browse(
        self, *, query: str | None = None, sort: BrowseSort | str = BrowseSort.UPDATED, page: int = 1, limit: int = 25
    ) -> ConversationPage:
        """List the workspace's conversations, each with the tokens of its context.

        `query` matches titles and session ids.
        """
        policy = CompactionPolicy.from_settings()
        found: QuerySet[Conversation] = self.scope.narrow(Conversation.objects.select_related("project"))
        if query:
            found = found.filter(
                Q(title__icontains=query) | Q(session_id__icontains=query) if is_storable(query) else Q(pk=0)
            )
        start = (page - 1) * limit
        annotated = found.annotate(last_outcome=last_outcome_of_resting())
        shown = list(annotated.order_by(*_ORDER[BrowseSort(sort)])[start : start + limit])
        filled = {row[0]: row[1:] for row in rows(_SQL["tokens_of_conversations"], [array(each.pk for each in shown)])}
        total = found.count()
        records = with_first_prompts(each.as_record() for each in shown)
        return ConversationPage(
            conversations=tuple(
                _overview(record, filled[each.pk], decide(each, policy, last_outcome=each.last_outcome))
                for record, each in zip(records, shown, strict=True)
            ),
            total=total,
            page=page,
            limit=limit,
            next_page=page + 1 if page * limit < min(total, MOST_PAGES * limit) else None,
        )


def _overview(
    record: ConversationRecord, filled: tuple[int, int, int], decision: CompactionDecision
) -> ConversationOverview:
    summary_tokens, system_tokens, summaries = filled
    return ConversationOverview(
        conversation=record,
        system_tokens=int(system_tokens),
        summary_tokens=int(summary_tokens),
        summaries=summaries,
        threshold_tokens=decision.threshold_tokens,
        budget=decision.model_token_budget,
        is_under_pressure=decision.is_pressing,
    )
