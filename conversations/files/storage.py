"""Store files durably on a local disk, and translate storage failures."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage

from conversations.errors import Unavailable

try:
    from botocore.exceptions import BotoCoreError, ClientError

    # The errors of the S3 client are not OSErrors.
    STORAGE_FAILURES: tuple[type[Exception], ...] = (OSError, BotoCoreError, ClientError)
except ImportError:
    STORAGE_FAILURES = (OSError,)


@contextmanager
def storing(what: str) -> Iterator[None]:
    """Translate a storage failure to Unavailable; `what` begins its message."""
    try:
        yield
    except STORAGE_FAILURES as refusal:
        code = "disk_full" if getattr(refusal, "errno", None) in (errno.ENOSPC, errno.EDQUOT) else None
        raise Unavailable(f"{what}: {getattr(refusal, 'strerror', None) or refusal}.", code=code) from refusal


class WholeFileStorage(FileSystemStorage):
    """A storage on a local disk with atomic and durable writes.

    Its names identify the content: saving under an existing name replaces the file with the same bytes.
    """

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name

    def _save(self, name: str, content: Any) -> str:
        target = Path(self.path(name))
        for directory in (target.parent, self._unfinished):
            make_private(directory)
        # On the same disk, so that a rename is atomic.
        handle, unfinished = tempfile.mkstemp(dir=self._unfinished)
        try:
            with os.fdopen(handle, "wb") as file:
                for chunk in content.chunks():
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            Path(unfinished).replace(target)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
        sync(target.parent)
        return name

    def sweep(self, *, older_than_seconds: float) -> int:
        """Remove incomplete files of killed processes, and return their number."""
        count = 0
        for path in self._unfinished.iterdir() if self._unfinished.is_dir() else ():
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > older_than_seconds:
                    path.unlink()
                    count += 1
        return count

    @property
    def _unfinished(self) -> Path:
        return Path(self.location) / "unfinished"


def make_private(directory: Path) -> None:
    """Create missing directories for their owner only; leave existing ones as is."""
    for missing in reversed([each for each in (directory, *directory.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def sync(path: Path) -> None:
    """Sync a file, or a directory with its new names, to survive a power failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
