"""Put the result of every tool call right after it, as all APIs demand. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conversations.formats.rendered import RepairKind, Repairs
from conversations.formats.turns import Block, Call, Result, Text, Turn
from conversations.types import Role

ORPHAN = "[The result of a tool call that is not shown]"
MISSING = "[There is no result of this call: none was recorded, or it is not shown.]"

_STRANGE = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True)
class IdRule:
    """The limit of an API for call ids and tool names: `longest` characters."""

    longest: int

    def fitting(self, name: str) -> str:
        """Return the nearest name that the API accepts."""
        return _STRANGE.sub("_", name)[: self.longest] or "_"

    def unique(self, name: str, taken: dict[str, int]) -> str:
        """Return the name, numbered if it is in `taken` (name to last number)."""
        unique, number = name, taken.get(name, 1)
        while unique in taken:
            number += 1
            unique = f"{name[: self.longest - len(str(number)) - 1]}_{number}"
        taken[name] = number
        taken.setdefault(unique, 1)
        return unique


class _Exchange:
    """An assistant's turn with calls, and the results found for them."""

    def __init__(self, turn: Turn, place: int) -> None:
        self.turn = turn
        self.calls = turn.calls
        self.place = place
        self.results: list[tuple[Result, tuple[str, ...]] | None] = [None] * len(self.calls)
        # By id, and for any id by None: the indexes of the calls that may be unanswered, the first one last.
        self._open: dict[str | None, list[int]] = {None: [*reversed(range(len(self.calls)))]}
        for number in self._open[None]:
            if (call_id := self.calls[number].part.tool_call_id) is not None:
                self._open.setdefault(call_id, []).append(number)

    def open_call(self, call_id: str | None) -> int | None:
        """Return the index of the first unanswered call with this id (None: any id)."""
        numbers = self._open.get(call_id, [])
        while numbers and self.results[numbers[-1]] is not None:
            numbers.pop()
        return numbers[-1] if numbers else None


def paired(turns: Sequence[Turn], rule: IdRule, repairs: Repairs) -> list[Turn]:
    """Return the turns; each turn with calls is followed by one with their results.

    A result with an id is paired with the latest turn that has an unanswered call of this id. A result without an id is
    paired with a call of the turn right before it. A result without a call becomes a text of the user. A call without a
    result gets a result that says so.
    """
    shown: list[Turn | _Exchange] = []
    by_id: dict[str, list[_Exchange]] = {}
    taken: dict[str, int] = {}
    for turn in turns:
        if turn.role is Role.TOOL:
            for block in turn.blocks:
                if isinstance(block, Result) and not _answered(block, turn, shown, by_id, repairs):
                    repairs.note(RepairKind.ORPHAN_RESULT, turn.item_ids)
                    shown.append(Turn(Role.USER, (Text(ORPHAN), *block.content), turn.item_ids))
        elif turn.calls:
            blocks = (_named(each, turn, rule, taken, repairs) for each in turn.blocks)
            exchange = _Exchange(turn._replace(blocks=tuple(blocks)), len(shown))
            shown.append(exchange)
            for call_id in dict.fromkeys(call.part.tool_call_id for call in exchange.calls):
                if call_id is not None:
                    by_id.setdefault(call_id, []).append(exchange)
        else:
            shown.append(turn)
    return [each for one in shown for each in (_whole(one, repairs) if isinstance(one, _Exchange) else (one,))]


def _answered(
    result: Result, turn: Turn, shown: Sequence[Turn | _Exchange], by_id: dict[str, list[_Exchange]], repairs: Repairs
) -> bool:
    """Pair the result with its call; return whether it has one."""
    if result.call_id is None:
        possible = [each for each in shown[-1:] if isinstance(each, _Exchange)]
    else:
        possible = by_id.get(result.call_id, [])
    for exchange in reversed(possible):
        number = exchange.open_call(result.call_id)
        if number is not None:
            exchange.results[number] = result, turn.item_ids
            if exchange.place != len(shown) - 1:
                repairs.note(RepairKind.MOVED_RESULT, turn.item_ids)
            return True
    return False


def _named(block: Block, turn: Turn, rule: IdRule, taken: dict[str, int], repairs: Repairs) -> Block:
    """Give a call the id that it is rendered with: valid for the API, and unique."""
    if not isinstance(block, Call):
        return block
    # A call without an id is named after its message, so that it has the same id in every context.
    own = block.part.tool_call_id or f"call_{turn.item_ids[0]}"
    shown_id = rule.unique(rule.fitting(own), taken)
    if shown_id != block.part.tool_call_id:
        repairs.note(RepairKind.RENAMED_CALL, turn.item_ids)
    return Call(block.part, shown_id)


def _whole(exchange: _Exchange, repairs: Repairs) -> tuple[Turn, Turn]:
    """Return the turn of the calls and the turn of their results."""
    results: list[Result] = []
    item_ids: dict[str, None] = {}
    for call, found in zip(exchange.calls, exchange.results, strict=True):
        if found is None:
            repairs.note(RepairKind.MISSING_RESULT, exchange.turn.item_ids)
            result, made_from = Result(None, (Text(MISSING),), is_error=True), exchange.turn.item_ids
        else:
            result, made_from = found
        results.append(Result(call.shown_id, result.content, result.is_error))
        item_ids.update(dict.fromkeys(made_from))
    return exchange.turn, Turn(Role.TOOL, tuple(results), tuple(item_ids))


def tool_name(call: Call, rule: IdRule, item_ids: Iterable[str], repairs: Repairs) -> str:
    """Return the tool's name, changed if the API does not accept it."""
    own = call.part.tool_name or ""
    name = rule.fitting(own or "unnamed_tool")
    if name != own:
        repairs.note(RepairKind.RENAMED_TOOL, item_ids)
    return name
