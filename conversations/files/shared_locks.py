"""Locks for bytes that several files share.

Equal content of a workspace is stored once. A transaction that writes a row for the bytes holds a shared lock until it
commits. An erasure takes the exclusive lock, and then removes the bytes if no row needs them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pglock
from django.core.files.storage import Storage
from django.db import transaction

from conversations.errors import Conflict
from conversations.files.storage import storing
from conversations.models import LargeFile

# The prefix of these lock names.
BYTES = "lcm.bytes"


class BytesErased(Conflict):
    """The bytes were erased between storing them and writing their row."""

    code = "bytes_erased"
    retryable = True


@dataclass(frozen=True)
class SharedBytes:
    """The bytes under one path of a storage."""

    storage: Storage
    path: str

    def hold(self) -> None:
        """Hold the bytes until the transaction ends; BytesErased if just removed."""
        self._lock(shared=True)
        with storing("The file cannot be stored"):
            is_there = self.storage.exists(self.path)
        if not is_there:
            raise BytesErased("The same content was erased at this moment, so nothing was stored; store it again.")

    @transaction.atomic
    def remove_unless_needed(self) -> None:
        """Remove the bytes unless a row that is not erased needs them."""
        self._lock(shared=False)
        # After the holders have committed, so that a file stored since the erasure counts.
        if not LargeFile.objects.filter(storage_uri=self.path, erased_by=None).exists():
            self.storage.delete(self.path)

    def _lock(self, *, shared: bool) -> None:
        # A transaction's lock, which a broken connection releases.
        pglock.advisory(f"{BYTES}.{self.path}", shared=shared, xact=True).acquire()
