"""Share the threads of a web process fairly among callers."""

from __future__ import annotations

import asyncio
import hashlib

from django.conf import settings

from lcmsite.api.concurrency import FairQueue, Limits, Place, QueueFull, Share, gate
from lcmsite.catalogue.problems import Busy
from lcmsite.ops.metrics.counters import CLIENT_LIMITS
from lcmsite.server.incoming import Scope


def limits_of_process() -> Limits:
    """The limits that follow from the gate of this process."""
    gated, waiting = gate().limits, settings.DEPLOYMENT.max_waiting_requests
    return Limits(
        # One caller may take what it may run, and as much as the gate lets it wait for heavy operations.
        running=Share(gated.threads, gated.running.of_one_caller + gated.heavy_waiting.of_one_caller),
        waiting=Share(waiting, (waiting + 1) // 2),
    )


def caller_of(scope: Scope) -> str:
    """Tell callers apart before authentication: by key, session or address."""
    headers = dict(scope["headers"])
    if credentials := headers.get(b"authorization") or headers.get(b"cookie"):
        return hashlib.sha256(credentials).hexdigest()
    client = scope.get("client")
    return client[0] if client else ""


async def take_place(places: FairQueue, caller: str) -> Place:
    """Wait on the event loop for a place; Busy where too many requests wait."""
    admitted = asyncio.get_running_loop().create_future()

    def admit() -> None:
        if not admitted.cancelled():
            admitted.set_result(None)

    place = Place(caller, admit)
    try:
        if not places.enter(place):
            await admitted
    except QueueFull:
        CLIENT_LIMITS.labels("busy").inc()
        raise Busy("Too many requests are waiting (LCM_MAX_WAITING_REQUESTS).") from None
    except asyncio.CancelledError:
        if not places.give_up(place):
            places.leave(place)
        raise
    return place
