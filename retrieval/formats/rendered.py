"""What a format makes of the items of a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrieval.assembly.types import Repair


@dataclass(frozen=True)
class Rendered:
    """Messages in an API's own shape; `sources` names the items of each."""

    messages: tuple[Mapping[str, Any], ...]
    sources: tuple[tuple[str, ...], ...]
    system: tuple[Mapping[str, Any], ...] = ()
    repairs: tuple[Repair, ...] = ()


def content_of(pieces: Sequence[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """What OpenAI's APIs take for a content: a text alone as it is, several pieces as a list of them."""
    if len(pieces) <= 1 and all("text" in piece for piece in pieces):
        return str(pieces[0]["text"]) if pieces else ""
    return list(pieces)
