"""The steps along the lineage, as pieces of statements."""

from __future__ import annotations

from conversations.sql import load

_SQL = load("retrieval/lineage.sql")
# Down to the sources of a summary, and up to what was made from it.
SOURCES, DERIVED = _SQL["sources"], _SQL["derived"]


def above_messages(ids: str) -> str:
    """The relation `above`: each of the messages of the placeholder, with every summary above it."""
    return _SQL["above_messages"].format(ids=ids, derived=DERIVED.format(of="above"))
