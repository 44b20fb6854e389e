"""Load named statements of `retrieval/sql`, until `conversations.sql` does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


@cache
def load(path: str) -> Mapping[str, str]:
    """The statements of a file by name: `retrieval/newest.sql` is the file `retrieval/sql/newest.sql`."""
    room, _, name = path.partition("/")
    _, *sections = _NAME.split((Path(__file__).parents[2] / room / "sql" / name).read_text())
    texts = [_COMMENT.sub("", text).strip() for text in sections[1::2]]
    return dict(zip(sections[::2], texts, strict=True))
