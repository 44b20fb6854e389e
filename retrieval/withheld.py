"""Which items are withheld from readers, because of a quarantine."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.sources import withheld_items
from conversations.sql import array, rows

# What is shown of a summary that carries the words of a quarantined message, and of a message with such a part.
REASON = "It says what was quarantined after it was made, or a part of it is quarantined."
_AFFECTED = "SELECT conversation_id FROM conversations WHERE conversation_id = ANY(%s) AND quarantined > 0"


def withheld_in(conversation_ids: Iterable[int | None]) -> frozenset[str]:
    """The ids of what is quarantined in conversations, and of summaries that say it.

    Each reader of texts asks this, and gives those items without a text, marked as `quarantined`.
    """
    wanted = {id for id in conversation_ids if id is not None}
    affected = rows(_AFFECTED, [array(wanted)]) if wanted else []
    return frozenset[str]().union(*(withheld_items(id) for (id,) in affected))
