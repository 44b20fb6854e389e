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
from conversations.store.append import checked_name


@dataclass(frozen=True)
class NewBoundary:
    """A boundary as a host reports it.

    A field that is None contradicts nothing that is recorded.
    """

    conversation_id: int
    host_reference: str
    last_seq: int | None
    metadata: dict[str, Any] | None

    @classmethod
    def checked(
        cls, conversation_id: int, host_reference: str, *, last_seq: int | None, metadata: Mapping[str, Any] | None
    ) -> NewBoundary:
        """Check the values; Invalid for what the database cannot hold exactly."""
        return cls(
            conversation_id=conversation_id,
            host_reference=exact_name("host_reference", host_reference),
            last_seq=last_seq,
            metadata=None if metadata is None else _plain(_bounded(metadata)),
        )

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
        if self.last_seq is not None and self.last_seq != boundary.last_seq:
            self._refuse("last_seq")
        # Asked of the database: jsonb writes 1e23 another way, and to Python the two would not be equal.
        same = CompactionBoundary.objects.filter(pk=boundary.pk, metadata=self.metadata)
        if self.metadata is not None and not same.exists():
            self._refuse("metadata")
        return boundary.as_record()

    def _refuse(self, field: str) -> None:
        raise Conflict(
            f"The boundary {self.host_reference[:80]!r} was recorded before with another {field}; nothing was "
            "changed. Use a new reference for a new compaction."
        )


def exact_name(field: str, text: str) -> str:
    """A name that is compared; Invalid if the database cannot hold it exactly."""
    try:
        checked_name(field, text)
    except ValueError as wrong:
        raise Invalid(str(wrong)) from wrong
    return text


def _bounded(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return require_metadata(metadata, most=StorePolicy.from_settings().max_metadata_bytes)


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        plain = json.loads(json.dumps(dict(metadata), allow_nan=False))
        is_storable = is_plain(plain)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise Invalid("metadata must be an object as JSON knows it.") from wrong
    if not is_storable:
        raise Invalid(f"metadata must not contain NUL or lone surrogates, nor have more than {MOST_LEVELS} levels.")
    return plain
