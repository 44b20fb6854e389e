"""Count the tokens of a part of a request: of its strings, without JSON syntax."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cachetools import LRUCache, cached

from conversations.content.tokens import IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS, SHORTEST_DATA, TokenEstimator
from lcmsite.gateway.window.types import Entry

# The types of images, each with a key that such an object has.
_IMAGES = {"image": "source", "image_url": "image_url", "input_image": "type", "image_generation_call": "result"}
# Encrypted or encoded values: the vendor counts their content, which is shorter.
_OPAQUE = frozenset({"signature", "encrypted_content"})
_CHARACTERS_OF_OPAQUE = 6
_CACHED = 20_000


@dataclass(frozen=True)
class RequestCounter:
    """Counts the tokens of JSON values; counts are cached by hash."""

    estimator: TokenEstimator = field(default_factory=TokenEstimator.from_settings)

    def tokens(self, value: Any) -> int:
        """Return the tokens of a value that is no entry, such as the tools."""
        texts, extra = _texts_in(value)
        return extra + int(_count_text(self.estimator, "\n".join(texts)))

    def entry_tokens(self, value: Any) -> int:
        """Return the tokens of a message or an item, with its framing."""
        return self.tokens(value) + MESSAGE_OVERHEAD_TOKENS

    def replace_value(self, entry: Entry, value: Mapping[str, Any]) -> Entry:
        """Return the entry with this value in place of its own."""
        return replace(entry, value=value, text=json.dumps(value), tokens=self.entry_tokens(value))


def _count_key(estimator: TokenEstimator, text: str) -> tuple[str, bytes]:
    return estimator.name, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@cached(LRUCache(_CACHED), key=_count_key, lock=threading.Lock())
def _count_text(estimator: TokenEstimator, text: str) -> int:
    return estimator.count(text)


def _texts_in(value: Any) -> tuple[list[str], int]:
    """Return the strings in a value, and the tokens of images and encoded values."""
    texts: list[str] = []
    extra = 0
    for key, leaf in _leaves(value):
        if leaf is None:
            extra += IMAGE_TOKENS
        elif key in _OPAQUE:
            extra += len(leaf) // _CHARACTERS_OF_OPAQUE
        elif len(leaf) >= SHORTEST_DATA and (key == "data" or leaf.startswith("data:")):
            extra += IMAGE_TOKENS
        elif key not in ("role", "type"):
            texts.append(leaf)
    return texts, extra


def _leaves(value: Any) -> Iterator[tuple[str, str | None]]:
    """Yield every key and string in a value, and None for an image.

    No recursion, as nesting may be deep.
    """
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, each = waiting.pop()
        if isinstance(each, dict):
            if _IMAGES.get(str(each.get("type"))) in each:
                yield key, None
                continue
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
