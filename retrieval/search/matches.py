"""Turn found rows into matches: author, time, place in the context, and a snippet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conversations.fast.records import record
from conversations.sql import array, load, rows, texts
from conversations.types import Role
from retrieval.search.ordering import FoundRow
from retrieval.search.searchables import FILES
from retrieval.search.snippets import SEARCHED, Needles, snippet
from retrieval.types import ItemKind, Match

FILE_PREFIX = "file_"

_SQL = load("retrieval/search_matches.sql")
_OF_KIND = {
    ItemKind.MESSAGE: _SQL["shown_messages"],
    ItemKind.SUMMARY: _SQL["shown_summaries"],
    ItemKind.FILE: _SQL["shown_files"].format(seq=FILES.seq, tokens=FILES.tokens, text=FILES.text),
}
_COVERING = _SQL["covering_summaries"]
_ROLES: dict[str | None, Role | None] = {None: None, **{each.value: each for each in Role}}
_NONE = Needles.of({})
# What is shown of one row, in the order in which `_match` reads it.
Row = tuple[Any, ...]
_COVERED_BY, _ACTIVE = 7, 8


def matches(found: Sequence[FoundRow], needles: Needles = _NONE) -> tuple[Match, ...]:
    """A match for each of these that is there, in the same order; `needles`: what their snippets show."""
    rows_by_id = _rows(found)
    shown = [(row, each) for each in found if (row := rows_by_id.get(str(each.id))) is not None]
    covering = _covering([row for row, each in shown if isinstance(each.id, int)])
    return tuple(_match(row, each, needles, covering) for row, each in shown)


def _covering(messages: Sequence[Row]) -> dict[str, str]:
    """By their ids, what covers the messages whose rows do not tell it."""
    ids = [row[0] for row in messages if row[_COVERED_BY] is None and not row[_ACTIVE]]
    return dict(rows(_COVERING, {"messages": array(ids)})) if ids else {}


def _rows(found: Sequence[FoundRow]) -> dict[str, Row]:
    """What there is to show of these, by id: one statement for all kinds of things."""
    if not found:
        return {}
    ids = [each.id for each in found]
    values = {
        "messages": array(id for id in ids if isinstance(id, int)),
        "others": texts(id for id in ids if isinstance(id, str)),
        "is_shown": any(each.snippet is None for each in found),
        "searched": SEARCHED,
    }
    present = set(map(_kind, ids))
    statement = " UNION ALL ".join(f"({text})" for kind, text in _OF_KIND.items() if kind in present)
    return {row[0]: row for row in rows(statement, values)}


def _kind(id: int | str) -> ItemKind:
    if isinstance(id, int):
        return ItemKind.MESSAGE
    return ItemKind.FILE if id.startswith(FILE_PREFIX) else ItemKind.SUMMARY


def _match(row: Row, found: FoundRow, needles: Needles, covering: Mapping[str, str]) -> Match:
    id, conversation_id, first_seq, last_seq, created_at, tokens, content, covered_by, active, *more = row
    role, author, depth, file_name = more
    kind = _kind(found.id)
    return record(
        Match,
        {
            "id": f"msg_{id}" if kind is ItemKind.MESSAGE else id,
            "kind": kind,
            "conversation_id": conversation_id,
            "first_seq": first_seq,
            "last_seq": last_seq,
            "created_at": created_at,
            "token_count": tokens,
            "score": found.worth,
            "snippet": found.snippet or snippet(content or "", needles),
            "active": active,
            "covered_by": covered_by or covering.get(id),
            "role": _ROLES[role],
            "author": author,
            "depth": depth,
            "file_name": file_name,
        },
    )
