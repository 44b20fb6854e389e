"""Where the bytes of large files lie on this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage


class WholeFileStorage(FileSystemStorage):
    """Files that are there whole, on the disk and not only on their way to it, or are not there.

    For names that tell the content: saving again under a name puts the same bytes there, at no moment fewer.
    """

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name

    def _save(self, name: str, content: Any) -> str:
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=target.parent, prefix=".unfinished-")
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
        _sync(target.parent)
        return name


def _sync(directory: Path) -> None:
    """Make a new name in the directory survive a power failure."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
