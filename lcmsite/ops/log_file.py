"""The log file of `lcm up`: what its processes write while the terminal shows only what a person needs."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from lcmsite.embedded_postgres.location import make_directory

NAME = "lcm.log"
# Past this size, the log becomes the one before (`lcm.log.1`) and begins anew.
MOST_BYTES = 64 * 1024**2
SHOWN_LINES = 60


@contextmanager
def log_file(data_dir: Path) -> Iterator[TextIO]:
    """Open the log for appending, and have this process log into it within the block."""
    make_directory(data_dir)
    path = data_dir / NAME
    path.touch(mode=0o600)
    with path.open("a", encoding="utf-8") as log:
        handlers = [each for each in logging.root.handlers if isinstance(each, logging.StreamHandler)]
        streams = [each.setStream(log) for each in handlers]
        try:
            yield log
        finally:
            for handler, stream in zip(handlers, streams, strict=True):
                if stream is not None:
                    handler.setStream(stream)


def rotate(log: TextIO) -> None:
    """Keep the log within bounds. Several processes append to the same open file, so it is copied and emptied."""
    with suppress(OSError):
        if os.fstat(log.fileno()).st_size > MOST_BYTES:
            shutil.copyfile(log.name, f"{log.name}.1")
            os.truncate(log.name, 0)


def tail(log: TextIO, *, since: int) -> str:
    """The last lines that were written behind this position."""
    with Path(log.name).open(encoding="utf-8", errors="replace") as written:
        written.seek(since)
        return "".join(written.readlines()[-SHOWN_LINES:])
