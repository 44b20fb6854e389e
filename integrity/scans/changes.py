"""Which conversations have changed since they were last found clean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import F, Func, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat

from conversations.models import Conversation
from conversations.sql import array, rows
from integrity.examination import Examination
from integrity.models import ConversationCheck

# Whatever is written to a conversation moves a counter on its row, and a row that is written anew has another version:
# which transaction wrote it, and where it lies.
_VERSIONS = "SELECT conversation_id, xmin::text || ' ' || ctid::text FROM conversations WHERE conversation_id = ANY(%s)"


class _SystemColumn(Func):
    """A column that every row has, and no model."""

    template = '"conversations"."%(function)s"'
    output_field = TextField()


def not_looked_at_since(moment: datetime, conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Those of `since_last_clean` that were not checked since, as they are now."""
    return conversations.exclude(integrity_check__checked_at__gte=moment, integrity_check__row_version=F("row_version"))


def since_last_clean(conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Those that were never found clean, or have changed since."""
    version = Concat(
        Cast(_SystemColumn(function="xmin"), TextField()),
        Value(" "),
        Cast(_SystemColumn(function="ctid"), TextField()),
        output_field=TextField(),
    )
    return conversations.annotate(row_version=version).exclude(
        integrity_check__is_clean=True, integrity_check__row_version=F("row_version")
    )


def versions_of(conversation_ids: Iterable[int]) -> dict[int, str]:
    """The versions of these conversations' rows."""
    return dict(rows(_VERSIONS, [array(conversation_ids)]))


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
