"""Bytes that several files share, in the hands of one who needs them or of one who removes them, never of both.

The same content of a workspace lies in one place, whoever stores it. Who writes a row that needs the bytes holds them,
beside others who do, until the row is committed; who removes them, after an erasure, waits for that, and then looks
whether any row needs them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pglock
from django.core.files.storage import Storage
from django.db import transaction

from conversations.errors import Conflict
from conversations.files.storage import storing
from conversations.models import LargeFile

# The key space of these locks, as that of compaction's.
BYTES = "lcm.bytes"


class BytesErased(Conflict):
    """The same content was erased at this very moment: what was to be needed is there no more."""

    code = "bytes_erased"
    retryable = True


@dataclass(frozen=True)
class SharedBytes:
    """What lies under one path of a storage."""

    storage: Storage
    path: str

    def hold(self) -> None:
        """Keep the bytes until the transaction ends; BytesErased if somebody has just removed them."""
        self._lock(shared=True)
        with storing("The file cannot be stored"):
            is_there = self.storage.exists(self.path)
        if not is_there:
            raise BytesErased("The same content was erased at this moment, so nothing was stored; store it once more.")

    @transaction.atomic
    def remove_unless_needed(self) -> None:
        """Remove the bytes for good, unless a row that is not erased needs them. Raises what the storage raises."""
        self._lock(shared=False)
        # Asked when those who held the bytes have committed: also what somebody has stored anew since the erasure.
        if not LargeFile.objects.filter(storage_uri=self.path, erased_by=None).exists():
            self.storage.delete(self.path)

    def _lock(self, *, shared: bool) -> None:
        # A lock of the transaction: a connection that breaks takes it along.
        pglock.advisory(f"{BYTES}.{self.path}", shared=shared, xact=True).acquire()
