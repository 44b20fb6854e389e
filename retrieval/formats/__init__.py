"""An assembled context as the messages of somebody's API: a format a file, each a pure function of the context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from retrieval.assembly_types import AssembledContext
from retrieval.formats.neutral import as_neutral

FORMATS: Mapping[str, Callable[[AssembledContext], list[dict[str, Any]]]] = {"neutral": as_neutral}

__all__ = ["FORMATS", "as_neutral"]
