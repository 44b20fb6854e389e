"""Makes matches of what a search has found: who said it, when, where it stands now, and the piece that shows why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conversations.fast.records import record
from conversations.sql import array, rows, texts
from conversations.types import Role
from retrieval.limits import Deadline
from retrieval.lineage_steps import DERIVED
from retrieval.search.ordering import Spot
from retrieval.search.searchables import FILES
from retrieval.search.snippets import SEARCHED, Needles, snippet
from retrieval.types import ItemKind, Match

FILE_PREFIX = "file_"

# To count the characters of a text takes longer than to fetch it: of most, their bytes tell that there are few enough.
_SEARCHED = f"CASE WHEN octet_length(content) <= {SEARCHED} THEN content ELSE left(content, {SEARCHED}) END"
# A summary takes the place of its first source in the context, so the item before a message that is not in it is what
# stands for that message, if no message is missing from its stretch.
_MESSAGES = """(
    SELECT message_id::text AS id, conversation_id, seq AS first_seq, seq AS last_seq, created_at, token_count,
           {content} AS content,
           CASE WHEN NOT active THEN (
               SELECT (
                   SELECT summary_id FROM summaries top
                   WHERE top.summary_id = item.summary_id
                     AND seq BETWEEN first_seq AND last_seq AND descendant_count = last_seq - first_seq + 1
               )
               FROM context_items item
               WHERE item.conversation_id = messages.conversation_id AND item.ordinal <= seq
               ORDER BY item.ordinal DESC LIMIT 1
           ) END AS covered_by,
           active, role::text AS role, author, NULL::integer AS depth, NULL::text AS file_name
    FROM messages, LATERAL (
        SELECT EXISTS (
            SELECT FROM context_items item WHERE item.message_id = messages.message_id OFFSET 0
        ) AS active OFFSET 0
    ) AS shown
    WHERE {where}
)"""
# What covers the others: that from which nothing was derived and which nothing supersedes. A step that leads nowhere
# tells that the way has ended: to ask of every summary on it whether anything was derived from it would be one more
# look-up for each.
_COVERING = f"""
    WITH RECURSIVE above AS (
        SELECT message_id, summary_id, NULL::text AS top FROM summary_messages WHERE message_id = ANY(%s::bigint[])
        UNION
        SELECT above.message_id, derived.summary_id, above.summary_id
        FROM above LEFT JOIN {DERIVED.format(of="above")} AS derived ON true WHERE above.summary_id IS NOT NULL
    )
    SELECT message_id::text, min(top) FROM above
    WHERE summary_id IS NULL
      AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = above.top OFFSET 0)
    GROUP BY message_id
"""
_SUMMARIES = """(
    SELECT summary_id, conversation_id, first_seq, last_seq, latest_at, token_count,
           {content}, NULL,
           NOT EXISTS (SELECT FROM summary_parents p WHERE p.parent_summary_id = summaries.summary_id OFFSET 0)
           AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = summaries.summary_id OFFSET 0),
           NULL, NULL, depth, NULL
    FROM summaries WHERE {where}
)"""
_FILES = f"""(
    SELECT file_id, conversation_id, {FILES.seq}, {FILES.seq}, created_at, {FILES.tokens},
           CASE WHEN %(is_shown)s THEN left({FILES.text}, {SEARCHED}) END, NULL, false,
           NULL, NULL, NULL, file_name
    FROM large_files WHERE file_id = ANY(%(others)s::text[])
)"""
_IF_SHOWN = f"CASE WHEN %(is_shown)s THEN {_SEARCHED} END"
_OF_KIND = {
    ItemKind.MESSAGE: _MESSAGES.format(content=_IF_SHOWN, where="message_id = ANY(%(messages)s::bigint[])"),
    ItemKind.SUMMARY: _SUMMARIES.format(content=_IF_SHOWN, where="summary_id = ANY(%(others)s::text[])"),
    ItemKind.FILE: _FILES,
}

_ROLES: dict[str | None, Role | None] = {None: None, **{each.value: each for each in Role}}
_NONE = Needles.of({})
# What is shown of one row, in the order in which `_match` reads it.
Row = tuple[Any, ...]
_COVERED_BY, _ACTIVE, _DEPTH = 7, 8, 11


def shown_of(kind: ItemKind, found: str) -> str:
    """The statement for what is shown of messages, or summaries, that an expression has found: a `Row` for each.

    It tells their `row`, where they stand in the table: so no index has to lead there again.
    """
    asked, table = (_MESSAGES, "messages") if kind is ItemKind.MESSAGE else (_SUMMARIES, "summaries")
    return asked.format(content=_SEARCHED, where=f"{table}.ctid = ANY(ARRAY(SELECT row FROM {found}))")


def depth_of(row: Row) -> int | None:
    """How deep the summary is of which this is shown; None of a message."""
    depth: int | None = row[_DEPTH]
    return depth


def matches(spots: Sequence[Spot], needles: Needles = _NONE, *, deadline: Deadline) -> tuple[Match, ...]:
    """A match for each of these that is there, in the same order; `needles`: what is to be seen in their snippets.

    They are the last that is read of a search.
    """
    found = _rows([each for each in spots if each.row is None])
    shown = [(row, each) for each in spots if (row := each.row or found.get(str(each.id))) is not None]
    covering = _covering([row for row, each in shown if isinstance(each.id, int)])
    return tuple(_match(row, each, needles, covering) for row, each in shown)


def _covering(messages: Sequence[Row]) -> dict[str, str]:
    """By their ids, what covers the messages of which their rows do not tell it."""
    ids = [row[0] for row in messages if row[_COVERED_BY] is None and not row[_ACTIVE]]
    return dict(rows(_COVERING, [array(ids)])) if ids else {}


def _rows(spots: Sequence[Spot]) -> dict[str, Row]:
    """What there is to show of these, by id: one question for all kinds of things."""
    if not spots:
        return {}
    ids = [each.id for each in spots]
    values = {
        "messages": array(id for id in ids if isinstance(id, int)),
        "others": texts(id for id in ids if isinstance(id, str)),
        "is_shown": any(each.snippet is None for each in spots),
    }
    present = set(map(_kind, ids))
    statement = " UNION ALL ".join(asked for kind, asked in _OF_KIND.items() if kind in present)
    return {row[0]: row for row in rows(statement, values)}


def _kind(id: int | str) -> ItemKind:
    if isinstance(id, int):
        return ItemKind.MESSAGE
    return ItemKind.FILE if id.startswith(FILE_PREFIX) else ItemKind.SUMMARY


def _match(row: Row, spot: Spot, needles: Needles, covering: Mapping[str, str]) -> Match:
    id, conversation_id, first_seq, last_seq, created_at, tokens, content, covered_by, active, *more = row
    role, author, depth, file_name = more
    kind = _kind(spot.id)
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
            "score": spot.worth,
            "snippet": spot.snippet or snippet(content or "", needles),
            "active": active,
            "covered_by": covered_by or covering.get(id),
            "role": _ROLES[role],
            "author": author,
            "depth": depth,
            "file_name": file_name,
        },
    )
