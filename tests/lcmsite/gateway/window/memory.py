"""A memory of a conversation without a database, and an assembler on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from conversations.content.tokens import TokenEstimator
from lcmsite.gateway.lookups.offering import with_tools
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.request_entries import parse_entries
from lcmsite.gateway.window.types import Assembled, ShownSummary, StoredCut, WindowRequest
from lcmsite.gateway.window.window_assembler import WindowAssembler
from tests.lcmsite.gateway.window.wire import Wire

COUNTER = RequestCounter(TokenEstimator("estimate"))
MARK = "<lcm_injected "


@dataclass
class Kept:
    """What is kept of a conversation; it summarizes ten messages at a time."""

    newest: int = 0
    cuts: list[StoredCut] = field(default_factory=list)
    found: list[ShownSummary] = field(default_factory=list)
    is_quick: bool = True
    lookups: dict[int, dict[str, Any]] = field(default_factory=dict)

    def stored_cuts(self, window: int) -> list[StoredCut]:
        return [each for each in reversed(self.cuts) if each.window == window]

    def store_cut(self, stored: StoredCut) -> None:
        self.cuts.append(stored)

    def active_summaries(self) -> list[ShownSummary]:
        return self.found

    def find_summaries(self, summary_ids: Sequence[str]) -> list[ShownSummary]:
        return [each for each in self.found if each.summary_id in summary_ids]

    def compact(self) -> None:
        if self.is_quick:
            self.summarize()

    def read_lookups(self) -> dict[int, dict[str, Any]]:
        return self.lookups

    def summarize(self) -> None:
        first = self.found[-1].last_seq + 1 if self.found else 1
        while first + 9 <= self.newest - 8:
            text = f'<summary id="sum_{first}">{"summarized " * 40}</summary>'
            self.found.append(ShownSummary(f"sum_{first}", first, first + 9, text))
            first += 10


def assembler_of(memory: Kept, *, window: int, is_trial: bool = False) -> WindowAssembler:
    return WindowAssembler(7, memory, COUNTER, window, is_trial)


def assembled(
    wire: Wire, memory: Kept, *, window: int, is_trial: bool = False, has_lookups: bool = False, **more: object
) -> Assembled:
    memory.newest = len(wire.entries)
    body = wire.body(**more)
    return assembler_of(memory, window=window, is_trial=is_trial).assemble(
        surface=wire.surface,
        body=body,
        seqs=wire.seqs(),
        offered_body=with_tools(wire.surface, body) if has_lookups else None,
    )


def read(wire: Wire, body: bytes) -> WindowRequest:
    found = parse_entries(wire.surface, body, counter=COUNTER)
    assert isinstance(found, WindowRequest)
    return found
