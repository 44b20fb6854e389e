"""How many requests a minute a key may make (LCM_RATE_LIMIT): all processes of one machine count together.

What is kept of a key is one moment, in a file that the processes map into memory: when all that it has asked for would
be through if it were let through evenly (the "generic cell rate algorithm"). No database is asked, so that a key that
asks too much costs nearly nothing. Each machine counts for itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import mmap
import os
import struct
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from django.conf import settings

from conversations.errors import LcmError
from lcmsite.ops.metrics.directory import shared_directory
from lcmsite.ops.metrics.faces import RATE_LIMITED

FILE = "rate-limits"
# So many keys are told apart at once; each may lie in one of a few places, and takes that of who has rested longest.
PLACES = 16_384
NEIGHBOURS = 8
_PLACE = struct.Struct("<Qd")


class TooManyRequests(LcmError):
    """The key has asked more often than it may."""

    code = "rate_limited"
    retryable = True

    def __init__(self, allowance: Allowance) -> None:
        super().__init__(
            f"This key may make {allowance.limit} requests a minute; go on in {allowance.retry_after} s.",
            retry_after=allowance.retry_after,
        )
        self.allowance = allowance


@dataclass(frozen=True)
class Allowance:
    """What a key may still ask for, and how an answer says so."""

    limit: int
    burst: int
    remaining: int
    reset: int
    retry_after: int = 0

    @property
    def headers(self) -> Mapping[str, str]:
        """As the IETF's draft on rate limit headers has them: how many, how many are left, when all are there again."""
        return {
            "RateLimit-Limit": str(self.burst),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset),
            "RateLimit-Policy": f"{self.burst};w={math.ceil(self.burst * 60 / self.limit)}",
        }


@dataclass
class Ledger:
    """The moments of all keys, in a file that other processes have open, too."""

    path: Path
    _file: int = field(init=False)
    _map: mmap.mmap = field(init=False)
    _threads: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = PLACES * _PLACE.size
        if os.fstat(self._file).st_size < size:
            os.ftruncate(self._file, size)
        self._map = mmap.mmap(self._file, size)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Within, nobody else reads or writes, in this process or in another."""
        with self._threads:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def find(self, key: int) -> tuple[int, float]:
        """Where the key's moment stands, or will stand, and the moment: 0 for a key that has not been here."""
        oldest = (math.inf, 0)
        for step in range(NEIGHBOURS):
            offset = (key + step) % PLACES * _PLACE.size
            held, moment = _PLACE.unpack_from(self._map, offset)
            if held == key:
                return offset, moment
            oldest = min(oldest, (moment, offset))
        return oldest[1], 0.0

    def write(self, offset: int, key: int, moment: float) -> None:
        _PLACE.pack_into(self._map, offset, key, moment)


def spend(key: str, *, ledger: Ledger, limit: int, burst: int, now: float) -> Allowance:
    """Let one request of the key through; TooManyRequests if it has none left.

    `burst` of them may come at once; after that, `limit` a minute. A refused one costs nothing.
    """
    interval = 60.0 / limit
    number = int.from_bytes(hashlib.sha256(key.encode(errors="surrogatepass")).digest()[:8], "little") or 1
    with ledger.locked():
        offset, moment = ledger.find(number)
        due = max(now, moment) + interval
        wait = due - burst * interval - now
        # A billionth of a second is no reason: the sums are of floating point.
        if wait <= 1e-9:
            ledger.write(offset, number, due)
    if wait > 1e-9:
        raise TooManyRequests(Allowance(limit, burst, 0, math.ceil(moment - now), retry_after=math.ceil(wait)))
    return Allowance(limit, burst, remaining=int((-wait + 1e-9) / interval), reset=math.ceil(due - now))


def spend_one(key: str) -> Allowance | None:
    """The same with the site's settings; None where there is no limit."""
    limit = settings.DEPLOYMENT.rate_limit
    if not limit:
        return None
    burst = min(limit, settings.DEPLOYMENT.rate_burst or limit)
    try:
        # The same clock in all processes, and nobody sets it.
        return spend(key, ledger=_ledger(os.getpid()), limit=limit, burst=burst, now=time.monotonic())
    except TooManyRequests:
        RATE_LIMITED.add()
        raise


@cache
def _ledger(process: int) -> Ledger:
    """Of this process and, where they have a directory in common, of the others."""
    directory = shared_directory()
    if directory is not None:
        return Ledger(directory / FILE)
    descriptor, name = tempfile.mkstemp(prefix="lcm-rate-limits-")
    os.close(descriptor)
    try:
        return Ledger(Path(name))
    finally:
        Path(name).unlink()
