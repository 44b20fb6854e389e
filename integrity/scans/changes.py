"""Which conversations have changed since they were last found clean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import F, QuerySet, TextField
from django.db.models.expressions import RawSQL

from conversations.models import Conversation
from integrity.examination import Examination
from integrity.models import ConversationCheck

# Every write to a conversation changes a counter on its row, and a written row has another transaction and place.
_VERSION = RawSQL("conversations.xmin::text || ' ' || conversations.ctid::text", (), output_field=TextField())


def since_last_clean(conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Return those that were never found clean, or have changed since."""
    return conversations.annotate(row_version=_VERSION).exclude(
        integrity_check__is_clean=True, integrity_check__row_version=F("row_version")
    )


def versions_of(conversation_ids: Iterable[int]) -> dict[int, str]:
    """Return the versions of these conversations' rows."""
    found = Conversation.objects.filter(pk__in=list(conversation_ids)).annotate(row_version=_VERSION)
    return dict(found.values_list("pk", "row_version"))


def note(versions: Mapping[int, str], examined: Examination, *, checked_at: datetime) -> None:
    """Record that these conversations were checked, at these versions."""
    ConversationCheck.objects.bulk_create(
        [
            ConversationCheck(
                conversation_id=conversation_id,
                checked_at=checked_at,
                is_clean=examined.is_clean(conversation_id),
                row_version=version,
            )
            for conversation_id, version in sorted(versions.items())
        ],
        batch_size=1_000,
        update_conflicts=True,
        unique_fields=["conversation"],
        update_fields=["checked_at", "is_clean", "row_version"],
    )
