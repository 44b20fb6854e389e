"""The real conversations that lie beside the project, where they do; none of it is ours to copy."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"there are no real conversations in {DATA}")


def conversation_files() -> list[Path]:
    return sorted((DATA / "conversations").glob("*.jsonl.gz"))


def original_files(agent: str) -> list[Path]:
    """What this agent kept of its sessions, as it wrote it."""
    return sorted((DATA / "originals").glob(f"{agent}_*.jsonl.gz"))


def rows_of(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt") as lines:
        yield from map(json.loads, lines)
