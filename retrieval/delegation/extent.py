"""What a grant reaches: the summaries and messages it names, and what lies below them, so many levels down."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from conversations.sql import array, load, rows
from retrieval.ids import Named, named
from retrieval.types import ItemKind

_SQL = load("retrieval/delegation.sql")


@dataclass(frozen=True)
class Extent:
    """The summaries that may be read, each with its level, and the messages that are named themselves."""

    roots: tuple[str, ...]
    depth: int
    levels: Mapping[str, int]
    messages: frozenset[int]

    @classmethod
    def of(cls, item_ids: Sequence[str], *, depth: int) -> Extent:
        """Of these ids of summaries and messages."""
        known = [found for found in map(named, item_ids) if found is not None]
        roots = tuple(each.id for each in known if each.kind is ItemKind.SUMMARY)
        found = rows(_SQL["summaries_within"], {"roots": list(roots), "depth": depth}) if roots else []
        messages = frozenset(each.number for each in known if each.kind is ItemKind.MESSAGE)
        return cls(roots=roots, depth=depth, levels=dict(found), messages=messages)

    def levels_left(self, summary_id: str) -> int:
        """How many levels below this summary may still be opened; -1 if it is not within."""
        level = self.levels.get(summary_id)
        return -1 if level is None else self.depth - level

    def within(self, ids: Collection[Named]) -> frozenset[str]:
        """Those of the ids that exist and may be read."""
        found = {each.id for each in ids if each.kind is ItemKind.SUMMARY and each.id in self.levels}
        wanted = {each.number for each in ids if each.kind is ItemKind.MESSAGE and each.number < 2**63}
        held = self.messages & wanted
        if wanted - held:
            held |= {row[0] for row in rows(_SQL["messages_of_summaries"], [array(wanted - held), self._opened()])}
        return frozenset(found | {f"msg_{number}" for number in held})

    def conversations(self) -> list[int]:
        """The conversations that all of it is in."""
        return [row[0] for row in rows(_SQL["conversations"], [array(self.messages), list(self.roots)])]

    def spans(self) -> list[tuple[int, int, int]]:
        """Where the named messages stand: the conversation, and the first and last of those beside each other."""
        return [(id, first, last) for id, first, last in rows(_SQL["spans"], [array(self.messages)])]

    def tokens_below(self) -> int:
        """What everything that may be read would cost."""
        below = [summary_id for summary_id, level in self.levels.items() if level > 0]
        values = {"below": below, "messages": array(self.messages), "opened": self._opened()}
        return int(rows(_SQL["tokens_below"], values)[0][0])

    def _opened(self) -> list[str]:
        """The summaries whose messages may be read."""
        return [summary_id for summary_id, level in self.levels.items() if level < self.depth]
