"""The active context as a plan reads it, in a sixth of the memory that its slots would take. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator

from compaction.planner import Slot
from conversations.types import Role

_ROLES = tuple(Role)
_PLACE_OF = {role: place for place, role in enumerate(_ROLES)}
_ANSWER = 1 << 7


class Context(Collection[Slot]):
    """Slots, oldest first: kept as columns, and each made anew whenever it is looked at."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        self._ordinals = array("q")
        self._tokens = array("i")
        # 0 for a summary: ids of messages begin with 1.
        self._message_ids = array("q")
        self._roles = bytearray()
        # The only call of a message; 0 where it has none, or others than can be told so.
        self._calls = array("q")
        self._others: dict[int, tuple[int, ...]] = {}
        self._summaries: dict[int, Slot] = {}
        for slot in slots:
            self._ordinals.append(slot.ordinal)
            self._tokens.append(slot.tokens)
            self._message_ids.append(slot.message_id or 0)
            if slot.message_id is None or slot.role is None:
                self._summaries[slot.ordinal] = slot
                self._roles.append(0)
            else:
                self._roles.append(_PLACE_OF[slot.role] | (_ANSWER if slot.is_answer else 0))
            call = slot.calls[0] if len(slot.calls) == 1 else 0
            self._calls.append(call)
            if slot.calls and not call:
                self._others[slot.ordinal] = slot.calls

    def __len__(self) -> int:
        return len(self._ordinals)

    def __iter__(self) -> Iterator[Slot]:
        summaries, others = self._summaries, self._others
        # As the class itself does it, without the call: they are made anew five times a run.
        new = tuple.__new__
        for ordinal, tokens, message_id, role, call in zip(
            self._ordinals, self._tokens, self._message_ids, self._roles, self._calls, strict=True
        ):
            if message_id:
                calls = (call,) if call else others.get(ordinal, ())
                yield new(
                    Slot, (ordinal, tokens, message_id, None, _ROLES[role & ~_ANSWER], None, calls, role >= _ANSWER)
                )
            else:
                yield summaries[ordinal]

    def __contains__(self, slot: object) -> bool:
        return any(slot == each for each in self)
