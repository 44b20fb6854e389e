"""The active context as a plan reads it, in a ninth of the memory that its slots would take. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from struct import Struct

from compaction.planning.planner import Slot
from conversations.types import Role

_ROLES = tuple(Role)
_PLACE_OF = {role: place for place, role in enumerate(_ROLES)}
_ANSWER = 1 << 7
# What is kept of a slot: ordinal, message (0 for a summary: ids of messages begin with 1), call (0 where there is none,
# or not one that can be told so), tokens, role. One row after another: columns that grow beside each other leave holes
# in memory wherever they move.
_ROW = Struct("=qqqiB")


class Context(Collection[Slot]):
    """Slots, oldest first: kept as bytes, and each made anew whenever it is looked at."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        self._rows = bytearray()
        self._calls: dict[int, tuple[int, ...]] = {}
        self._summaries: dict[int, Slot] = {}
        self.tokens = 0
        for slot in slots:
            self.tokens += slot.tokens
            if slot.message_id is None or slot.role is None:
                self._summaries[slot.ordinal] = slot
                self._rows += _ROW.pack(slot.ordinal, 0, 0, 0, 0)
                continue
            call = slot.calls[0] if len(slot.calls) == 1 else 0
            if slot.calls and not call:
                self._calls[slot.ordinal] = slot.calls
            role = _PLACE_OF[slot.role] | (_ANSWER if slot.is_answer else 0)
            self._rows += _ROW.pack(slot.ordinal, slot.message_id, call, slot.tokens, role)

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

    @property
    def messages(self) -> int:
        """How many of the slots are messages."""
        return len(self) - len(self._summaries)

    def __iter__(self) -> Iterator[Slot]:
        summaries, others = self._summaries, self._calls
        # As the class itself does it, without the call: they are made anew five times a run.
        new = tuple.__new__
        for ordinal, message_id, call, tokens, role in _ROW.iter_unpack(self._rows):
            if message_id:
                calls = (call,) if call else others.get(ordinal, ())
                yield new(
                    Slot, (ordinal, tokens, message_id, None, _ROLES[role & ~_ANSWER], None, calls, role >= _ANSWER)
                )
            else:
                yield summaries[ordinal]

    def __contains__(self, slot: object) -> bool:
        return any(slot == each for each in self)
