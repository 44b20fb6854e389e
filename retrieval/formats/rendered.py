"""What a format makes of the items of a context."""

from __future__ import annotations

from collections.abc import Mapping
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
