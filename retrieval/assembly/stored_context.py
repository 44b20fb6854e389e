"""Read the present context with one statement a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.models import Conversation
from conversations.sql import array, load, rows
from conversations.types import Counters
from retrieval.assembly.candidates import Candidate
from retrieval.assembly.context_slots import EXCHANGES, REACH, SlotPage, Sought, page_in

_SQL = load("retrieval/assembly.sql")
# Of an exchange that is longer than most, more than one hit is looked around, in vain: so many for that.
_SPARE = 2


@dataclass(frozen=True)
class StoredContext:
    """The present context, with the messages that are sought and withheld."""

    conversation_id: int
    counters: Counters
    sought: Sequence[Sought] = ()
    is_withholding: bool = False

    @property
    def moment(self) -> None:
        return None

    def page(self, *, before: int, size: int, tokens: int, margin: int, is_all: bool) -> SlotPage:
        values: dict[str, Any] = {
            "id": self.conversation_id,
            "before": before,
            "size": size,
            "tokens": tokens,
            "margin": margin,
        }
        if self.sought:
            message_ids, beside = zip(*self.sought, strict=True)
            values |= {"sought": array(message_ids), "beside": array(beside), "overhead": MESSAGE_OVERHEAD_TOKENS}
            values |= {"places": EXCHANGES + _SPARE, "reach": REACH, "doubtful": 0 if is_all else 2 * REACH}
        is_raw = self.counters.active_messages == self.counters.message_count
        statement = _statement(
            is_all=is_all,
            counts=not is_all and not is_raw,
            seeks=bool(self.sought),
            withholds=self.is_withholding,
        )
        return page_in(rows(statement, values, binary=True))

    def around(self, windows: Iterable[tuple[int, int]]) -> list[Candidate]:
        firsts, lasts = zip(*windows, strict=True)
        values: dict[str, Any] = {"id": self.conversation_id, "firsts": array(firsts), "lasts": array(lasts)}
        return page_in(rows(_SQL["messages_between"], {**values, "overhead": MESSAGE_OVERHEAD_TOKENS})).near


def stored_context(conversation: Conversation, *, sought: Sequence[Sought] = ()) -> StoredContext:
    """The context of a conversation whose row was read in the same snapshot."""
    return StoredContext(
        conversation.conversation_id, conversation.counters, sought, is_withholding=bool(conversation.quarantined)
    )


def withheld_ids(conversation: Conversation) -> frozenset[str]:
    """The ids of the quarantined messages and summaries, which no model sees."""
    if not conversation.quarantined:
        return frozenset()
    return page_in(rows(_SQL["withheld"], {"id": conversation.conversation_id})).withheld


@cache
def _statement(*, is_all: bool, counts: bool, seeks: bool, withholds: bool) -> str:
    """The statement that reads what is asked for, and nothing else."""
    tables = ["whole_page"] if is_all else ["newest", "page", "before"]
    kinds = ["slot_rows"] if is_all else ["slot_rows", "before_rows"]
    if counts:
        kinds.append("summary_count_rows")
    if seeks:
        tables += ["sought", "around", "near"]
        kinds.append("sought_rows")
    if withholds:
        kinds.append("withheld")
    named = " UNION ALL ".join(
        ["SELECT message_id, role FROM messages WHERE message_id = ANY(ARRAY(SELECT message_id FROM page))"]
        + [f"SELECT message_id, role FROM {table}" for table in tables if table in ("before", "sought", "near")]
    )
    begin = _SQL["above_sought"] + ", " if seeks else "WITH "
    relations = [f"{table.removeprefix('whole_')} AS MATERIALIZED ({_SQL[table]})" for table in tables]
    selects = " UNION ALL ".join(_SQL[kind] for kind in [*kinds, "roles_and_parts"])
    return f"{begin}{', '.join(relations)}, named AS MATERIALIZED ({named}) {selects}"
