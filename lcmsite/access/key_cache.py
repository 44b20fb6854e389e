"""Whom a process has let in a moment ago: within a second, a key need not be looked up again.

The look-up takes as long as a third of an append, and an agent that writes asks many times a second. What is kept is
known by the key's hash, never by the key. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

# So long after it was taken back, a key may still let somebody in: by a process that did not take it back itself.
SECONDS_KNOWN = 1.0
MOST_KNOWN = 10_000


@dataclass(frozen=True)
class KnownKeys(Generic[T]):
    """What was found under the hashes of keys, for a moment. Moments are seconds by any one clock."""

    _found: dict[bytes, tuple[float, T]] = field(default_factory=dict)

    def get(self, key_hash: bytes, *, now: float) -> T | None:
        """What was found; None where it is too long ago, or was not."""
        until, found = self._found.get(key_hash, (now, None))
        return found if now < until else None

    def keep(self, key_hash: bytes, found: T, *, now: float, seconds_left: float | None) -> None:
        """Remember what was found; no longer than the key has left, if it expires."""
        if len(self._found) >= MOST_KNOWN:
            self.forget()
        lasts = SECONDS_KNOWN if seconds_left is None else min(SECONDS_KNOWN, seconds_left)
        self._found[key_hash] = (now + lasts, found)

    def forget(self) -> None:
        self._found.clear()
