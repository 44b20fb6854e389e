"""Questions about rows, in the words of the domain; they chain."""

from __future__ import annotations

from typing import Self

from django.apps import apps
from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db import models
from django.db.models import Exists, F, OuterRef

from conversations.store.read import messages_of
from conversations.types import MessageRecord


class LexemeQuery(SearchQuery):
    """A websearch query with the lexemes of `lcm_tsv`; see `sql/search.sql`."""

    SEARCH_TYPES: dict[str, str] = {"plain": "lcm_tsquery"}


class SearchableQuerySet(models.QuerySet):
    """Rows with a `content_tsv`, which is for searching only and never worth reading."""

    def matching(self, text: str) -> Self:
        """Rows that match a websearch query (words, "a phrase", or, -without), ranked."""
        query = LexemeQuery(text)
        return self.filter(content_tsv=query).annotate(rank=SearchRank(F("content_tsv"), query))

    def readable(self) -> Self:
        return self.defer("content_tsv")


class MessageQuerySet(SearchableQuerySet):
    def oldest_first(self) -> Self:
        return self.order_by("conversation_id", "seq")

    def between(self, first_seq: int, last_seq: int) -> Self:
        return self.filter(seq__gte=first_seq, seq__lte=last_seq)

    def uncovered(self) -> Self:
        """Messages that stand in no summary."""
        links = apps.get_model("conversations", "SummaryMessage").objects.filter(message_id=OuterRef("message_id"))
        return self.filter(~Exists(links))

    def as_records(self, *, with_parts: bool = True) -> list[MessageRecord]:
        """The messages as records, in this order."""
        return messages_of(list(self.values_list("message_id", flat=True)), with_parts=with_parts)


class SummaryQuerySet(SearchableQuerySet):
    def oldest_first(self) -> Self:
        return self.order_by("conversation_id", "first_seq", "-depth", "summary_id")


class ContextItemQuerySet(models.QuerySet):
    def in_order(self) -> Self:
        return self.order_by("conversation_id", "ordinal")
