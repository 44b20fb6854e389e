"""A host's boundary: checked, and recorded once under its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compaction.models import CompactionBoundary
from compaction.types import BoundaryRecord
from conversations.content.flattening import require_metadata
from conversations.content.lossless_values import MOST_LEVELS, is_plain
from conversations.errors import Conflict, Invalid
from conversations.policy import StorePolicy


@dataclass(frozen=True)
class NewBoundary:
    """A boundary as a host reports it; what is None contradicts no recorded value."""

    conversation_id: int
    host_reference: str
    last_seq: int | None = None
    metadata: dict[str, Any] | None = None

    def found(self) -> BoundaryRecord | None:
        """The recorded boundary of this name, if any; Conflict if it differs."""
        found = CompactionBoundary.objects.filter(
            conversation_id=self.conversation_id, host_reference=self.host_reference
        ).first()
        return None if found is None else self._same(found)

    def record(self, *, newest: int) -> tuple[BoundaryRecord, bool]:
        """Record the boundary; whether it is new, for another may have been first."""
        boundary, created = CompactionBoundary.objects.get_or_create(
            conversation_id=self.conversation_id,
            host_reference=self.host_reference,
            defaults={"last_seq": newest if self.last_seq is None else self.last_seq, "metadata": self.metadata or {}},
        )
        # The moment, and numbers in the metadata, are as the database has written them.
        boundary.refresh_from_db()
        return self._same(boundary), created

    def _same(self, boundary: CompactionBoundary) -> BoundaryRecord:
        # Compared by the database: jsonb writes 1e23 another way, and to Python the two would not be equal.
        same_metadata = CompactionBoundary.objects.filter(pk=boundary.pk, metadata=self.metadata)
        if self.last_seq is not None and self.last_seq != boundary.last_seq:
            differs = "last_seq"
        elif self.metadata is not None and not same_metadata.exists():
            differs = "metadata"
        else:
            return boundary.as_record()
        raise Conflict(
            f"The boundary {self.host_reference[:80]!r} was recorded before with another {differs}; nothing was "
            "changed. Use a new reference for a new compaction."
        )


def storable_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The metadata as JSON; Invalid for what the database cannot hold exactly."""
    if metadata is None:
        return None
    require_metadata(metadata, most=StorePolicy.from_settings().max_metadata_bytes)
    try:
        plain = json.loads(json.dumps(dict(metadata), allow_nan=False))
        is_storable = is_plain(plain)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise Invalid("metadata must be an object as JSON knows it.") from wrong
    if not is_storable:
        raise Invalid(f"metadata must not contain NUL or lone surrogates, nor have more than {MOST_LEVELS} levels.")
    return plain
