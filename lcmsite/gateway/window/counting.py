"""Count what a part of a request costs: its strings, not the JSON around them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS, TokenEstimator

# What a vendor takes for an image of usual size, whatever its file weighs.
IMAGE_TOKENS = 1_600
# Bytes of a file in a request; anything shorter is counted as the text that it may be.
_SHORTEST_DATA = 256
# The vendor counts what is hidden in these, which is less than their length.
_OPAQUE = frozenset({"signature", "encrypted_content"})
_CHARACTERS_OF_OPAQUE = 6
_CACHED = 20_000


@dataclass(frozen=True)
class RequestCounter:
    """Counts values of JSON; what was counted once is cached by its hash."""

    estimator: TokenEstimator = field(default_factory=TokenEstimator.from_settings)

    def tokens(self, value: Any) -> int:
        """What a value of the head costs."""
        texts, extra = _texts_in(value)
        return extra + self._counted("\n".join(texts))

    def entry_tokens(self, value: Any) -> int:
        """What a message or an item costs, with its framing."""
        return self.tokens(value) + MESSAGE_OVERHEAD_TOKENS

    def _counted(self, text: str) -> int:
        key = self.estimator.name, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with _lock:
            tokens = _counts.get(key)
        if tokens is None:
            tokens = self.estimator.count(text)
            with _lock:
                _counts[key] = tokens
        return tokens


_lock = threading.Lock()
_counts: LRUCache[tuple[str, bytes], int] = LRUCache(_CACHED)


def _texts_in(value: Any) -> tuple[list[str], int]:
    """The strings in a value, and the tokens of what is no text."""
    texts: list[str] = []
    extra = 0
    for key, leaf in _leaves(value):
        if key in _OPAQUE:
            extra += len(leaf) // _CHARACTERS_OF_OPAQUE
        elif len(leaf) >= _SHORTEST_DATA and (key == "data" or leaf.startswith("data:")):
            extra += IMAGE_TOKENS
        elif key not in ("role", "type"):
            texts.append(leaf)
    return texts, extra


def _leaves(value: Any) -> Iterator[tuple[str, str]]:
    """Every key and string in a value; a loop, as a client decides how deep it is."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, each = waiting.pop()
        if isinstance(each, dict):
            for name, inner in reversed(each.items()):
                if name == "cache_control":
                    continue
                waiting.append((name, inner))
                if not isinstance(inner, str) or name not in ("text", "content", "role", "type"):
                    waiting.append(("", name))
        elif isinstance(each, list):
            waiting.extend((key, inner) for inner in reversed(each))
        elif isinstance(each, str):
            yield key, each
        elif each is not None:
            yield "", str(each)
