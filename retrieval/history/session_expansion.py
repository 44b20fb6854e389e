"""Open a session, arc or epoch summary, down to the exact text of every message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from compaction.history.history_sources import withheld_sessions
from compaction.history.types import HistoryKind
from compaction.sources import withheld_in
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.models import Conversation
from conversations.scope import Scope, not_found
from conversations.sql import load, rows, snapshot, texts
from conversations.store.cursors import read_cursor, write_cursor
from retrieval.expansion.expand import BEGINNING, MORE, page_cap
from retrieval.expansion.expanded_items import Filling, Position, items_of
from retrieval.expansion.outline import UNLIMITED, Entry, Key, Outline, below_roots
from retrieval.history.types import HistoryItem, SessionExpansion
from retrieval.reader import Reader
from retrieval.types import ExpandedItem, ItemKind

_SQL = load("retrieval/history/expansion.sql")
_BELOW_SESSION = below_roots(_SQL["roots_of_session"], own_links=_SQL["messages_of_session"])
_KINDS = tuple(HistoryKind)
_MISMATCH = "This is not a cursor that expand_session gave for the same arguments, or it was changed"


class PastKey(NamedTuple):
    """The sort key of an item: a step of the walk, and a position below a session.

    `step` is the number of a session, arc or epoch summary in the walk. Each summary comes before its sources.
    """

    step: int
    seq: int = -1
    rank: int = 0
    summary_id: str = ""

    @property
    def below(self) -> Key:
        """The sort key within the items below the session of this step."""
        return BEGINNING.key if self.seq < 0 else Key(*self[1:])


class Root(NamedTuple):
    """The summary that is opened."""

    depth: int
    workspace_id: int
    project: str | None
    superseded_by: str | None


class Node(NamedTuple):
    """A session, arc or epoch summary below the root; `level` is its distance."""

    summary_id: str
    level: int
    of: str | None
    depth: int
    token_count: int
    conversation_id: int | None
    first_seq: int
    last_seq: int


class PastEntry(NamedTuple):
    """An item to expand: the node itself or, if `entry` is set, an item below it."""

    key: PastKey
    tokens: int
    node: Node
    entry: Entry | None = None


@dataclass(frozen=True)
class SessionOpener(Reader):
    """Opens session, arc and epoch summaries."""

    def expand_session(
        self,
        *,
        summary_id: str,
        depth: int = 1,
        include_messages: bool = False,
        token_cap: int | None = None,
        cursor: str | None = None,
    ) -> SessionExpansion:
        """Open a session, arc or epoch summary: a page of its sources, in order.

        One level below an epoch are its arcs, below an arc its sessions, and below a session its summaries and the
        messages that no summary covers. `depth` is the number of levels to open; -1 opens all. `include_messages` adds
        all messages below, byte for byte. A page has at most `token_cap` tokens, and `next_cursor` continues exactly
        where it stopped. Raises NotFound; Invalid `bad_cursor` for a cursor of another expansion.
        """
        cap = page_cap(self.policy, token_cap)
        request = repr((summary_id, depth, include_messages))
        position = _position(cursor, request)
        with snapshot():
            root = _root(summary_id, self.scope)
            levels = UNLIMITED if depth < 0 else depth
            nodes = [Node(*row) for row in rows(_SQL["below"], {"summary_id": summary_id, "depth": levels})]
            hidden = withheld_sessions(root.workspace_id)
            withheld = withheld_in(node.conversation_id for node in nodes)
            filling = Filling(self.tokens, lambda batch: _items_of(batch, hidden, withheld))
            entries = _entries(nodes, position.key, depth=levels, include_messages=include_messages, cap=cap)
            items, following = filling.filled(entries, position, cap)
        given = tuple(item for item in items if isinstance(item, HistoryItem))
        used = {item.conversation_id for item in given if item.conversation_id is not None}
        Conversation.objects.filter(pk__in=used).mark_used()
        after = None if following is None else [*following.key, following.content_offset, following.parts_offset]
        return SessionExpansion(
            summary_id=summary_id,
            kind=_KINDS[root.depth],
            project=root.project,
            depth=depth,
            include_messages=include_messages,
            items=given,
            tokens=sum(item.tokens for item in given),
            token_cap=cap,
            truncated=following is not None,
            cursor=None if after is None else write_cursor(after, of="expand_session", request=request),
            superseded_by=root.superseded_by,
            note=MORE if following is not None else None,
        )


def _entries(
    nodes: Sequence[Node], start: PastKey, *, depth: int, include_messages: bool, cap: int
) -> Iterator[PastEntry]:
    """Yield the items below a root from `start` on, oldest first, reading lazily."""
    for step, node in enumerate(nodes):
        if step < start.step:
            continue
        key = PastKey(step)
        if step > 0 and start <= key:
            yield PastEntry(key, node.token_count, node)
        if node.depth == 0 and node.level < depth:
            begins = start.below if step == start.step else BEGINNING.key
            outline = _outline(node, depth=depth - node.level, include_messages=include_messages)
            for entry in outline.entries(start=begins, cap=cap):
                yield PastEntry(PastKey(step, *entry.key), entry.tokens, node, entry)


def _outline(session: Node, *, depth: int, include_messages: bool) -> Outline:
    """The outline of the items below a session summary."""
    values = {
        "of": session.summary_id,
        "conversation_id": session.conversation_id,
        "depth": depth,
        "include_messages": include_messages,
    }
    return Outline(session.summary_id, 1, session.last_seq, depth == 1, _BELOW_SESSION, values)


def _root(summary_id: str, scope: Scope) -> Root:
    owned = "true" if scope.workspace_id is None else "s.workspace_id = %(workspace_id)s"
    values = {"summary_id": summary_id, "workspace_id": scope.workspace_id}
    found = rows(_SQL["root"].format(owned=owned), values) if summary_id.isprintable() else []
    if not found:
        raise not_found("session summary", summary_id)
    return Root(*found[0])


def _position(cursor: str | None, request: str) -> Position:
    if cursor is None:
        return Position(PastKey(0))
    values: list[Any] = read_cursor(cursor, of="expand_session", request=request, refusal=_MISMATCH)
    *key, content_offset, parts_offset = values
    return Position(PastKey(*key), content_offset, parts_offset)


def _items_of(batch: Sequence[PastEntry], hidden: frozenset[str], withheld: frozenset[str]) -> list[ExpandedItem]:
    ids = [each.node.summary_id for each in batch if each.entry is None]
    summaries = {row[0]: row for row in rows(_SQL["summaries"], [texts(ids)])} if ids else {}
    below = iter(items_of([each.entry for each in batch if each.entry is not None], withheld=withheld))
    return [
        _summary(each.node, summaries[each.node.summary_id], hidden)
        if each.entry is None
        else _below(next(below), each.node)
        for each in batch
    ]


def _below(item: ExpandedItem, session: Node) -> HistoryItem:
    values = {**vars(item), "level": item.level + session.level}
    return HistoryItem(**values, conversation_id=session.conversation_id)


def _summary(node: Node, row: tuple[Any, ...], hidden: frozenset[str]) -> HistoryItem:
    _, depth, content, created_at, conversation_id, erased, earliest, latest = row
    is_hidden = node.summary_id in hidden
    text = "" if is_hidden or erased else str(content)
    return HistoryItem(
        id=node.summary_id,
        kind=ItemKind.SUMMARY,
        of=node.of or "",
        level=node.level,
        first_seq=node.first_seq,
        last_seq=node.last_seq,
        tokens=node.token_count + MESSAGE_OVERHEAD_TOKENS if text else MESSAGE_OVERHEAD_TOKENS,
        content=text,
        created_at=created_at,
        content_total=len(text),
        depth=node.depth,
        erased=bool(erased),
        earliest_at=earliest,
        latest_at=latest,
        conversation_id=node.conversation_id,
        history_kind=_KINDS[node.depth],
        quarantined=is_hidden,
    )
