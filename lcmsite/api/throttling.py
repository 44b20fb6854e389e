"""The rate limit of a key (LCM_RATE_LIMIT), in requests per minute.

The count is kept in Django's cache: in Redis if LCM_REDIS_URL is set, else in a database table. A process reserves
requests in blocks, so that most requests need no cache access. All processes together never exceed the limit. If a key
spreads its requests over several processes, it may be refused too early, by up to one block per process. While the
cache fails, each process counts alone: a key may then make as many requests in each of them.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pglock
import structlog
from django.conf import settings
from django.core.cache import cache
from prometheus_client import Counter
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from conversations.errors import LcmError
from lcmsite.access.keys import Caller, caller_of_header

WINDOW_SECONDS = 60
# The share of the limit that a process reserves in one step.
BLOCK = 1 / 100
# Above this number of windows, all are dropped; each key then reserves a new block.
MOST_WINDOWS = 10_000
# How long a process counts alone after Redis has failed, because each attempt may wait for it.
SECONDS_ALONE = 10
logger = structlog.get_logger(__name__)

RATE_LIMITED = Counter("lcm_rate_limited_total", "Requests refused because their key had made too many.")


class TooManyRequests(LcmError):
    """The key has made as many requests as it may in this minute."""

    code = "rate_limited"
    retryable = True

    def __init__(self, allowance: Allowance) -> None:
        super().__init__(
            f"This key may make {allowance.limit} requests a minute; try again in {allowance.reset} s.",
            retry_after=allowance.reset,
        )
        self.allowance = allowance


@dataclass(frozen=True)
class Allowance:
    """A key's limit, its remaining requests, and the seconds until they reset."""

    limit: int
    remaining: int
    reset: int

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the IETF's draft on rate limits."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset),
            "RateLimit-Policy": f"{self.limit};w={WINDOW_SECONDS}",
        }


@dataclass
class Window:
    """The requests of one key in one minute, as known to this process."""

    limit: int
    # `reserved`: reserved by this process and not used yet. `unreserved`: not reserved by any process.
    reserved: int = field(default=0, init=False)
    unreserved: int = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self.unreserved = self.limit

    def spend(self, name: str) -> bool:
        """Count one request; False if the limit is reached."""
        with self.lock:
            if not self.reserved and self.unreserved:
                self._reserve(name)
            if not self.reserved:
                return False
            self.reserved -= 1
            return True

    def _reserve(self, name: str) -> None:
        block = max(1, int(self.limit * BLOCK))
        before = _add(name, block)
        if before is None:
            before = self.limit - self.unreserved
        self.reserved = min(block, max(0, self.limit - before))
        self.unreserved = max(0, self.limit - before - block)


class KeyThrottle(BaseThrottle):
    """Limits the requests of the caller that `BearerKey` has found."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Return True or raise TooManyRequests; sets `request.allowance`."""
        caller: Any = request.user
        request.allowance = spend_one(caller.api_key_id)  # type: ignore[attr-defined]
        return True


_windows: dict[tuple[int, int, int], Window] = {}
_alone_until = 0.0


def spend_one(api_key_id: int) -> Allowance | None:
    """Count one request of a key; None without a limit, TooManyRequests above it."""
    limit = settings.DEPLOYMENT.rate_limit
    if not limit:
        return None
    now = time.time()
    minute = int(now // WINDOW_SECONDS)
    reset = math.ceil((minute + 1) * WINDOW_SECONDS - now)
    if len(_windows) > MOST_WINDOWS:
        _windows.clear()
    window = _windows.setdefault((api_key_id, minute, limit), Window(limit))
    is_allowed = window.spend(f"requests:{api_key_id}:{minute}")
    allowance = Allowance(limit, window.reserved + window.unreserved if is_allowed else 0, reset)
    if not is_allowed:
        RATE_LIMITED.inc()
        raise TooManyRequests(allowance)
    return allowance


def admit(authorization: str) -> tuple[Caller, Mapping[str, str]]:
    """Authenticate and count one request; return the caller and rate limit headers."""
    caller = caller_of_header(authorization)
    assert caller.api_key_id is not None
    allowance = spend_one(caller.api_key_id)
    return caller, allowance.headers if allowance is not None else {}


def _add(name: str, requests: int) -> int | None:
    """Add to the shared count; the count before, or None if the cache fails."""
    if not settings.DEPLOYMENT.redis_url:
        # Django's database cache reads, then writes, so it needs a lock.
        with pglock.advisory(f"lcm.{name}"):
            return _add_to_cache(name, requests)
    # Imported here, so that a site without Redis does not load its client.
    from redis import RedisError

    global _alone_until
    if time.monotonic() < _alone_until:
        return None
    try:
        return _add_to_cache(name, requests)
    except RedisError as failure:
        _alone_until = time.monotonic() + SECONDS_ALONE
        logger.warning("rate_limits_not_shared", error=type(failure).__name__)
        return None


def _add_to_cache(name: str, requests: int) -> int | None:
    cache.add(name, 0, timeout=2 * WINDOW_SECONDS)
    try:
        return cache.incr(name, requests) - requests
    except ValueError:
        # The cache cannot be written, for example on a full disk.
        return None
