"""Looks through conversations with every invariant, and adds up what each has found and what it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from django.db.models import QuerySet

from conversations.models import Conversation
from integrity.invariants import Found, Invariant
from integrity.types import Finding

# Conversations are looked through a batch at a time: enough for a set-based query to pay, few enough to stay small.
BATCH_MESSAGES = 200_000
BATCH_CONVERSATIONS = 2_000


@dataclass
class Examination:
    """What was found so far, by the code of each invariant."""

    invariants: Sequence[Invariant]
    thorough: bool = True
    # Called with the seconds that each look took: whoever is in no hurry rests in between.
    rest: Callable[[float], None] = lambda seconds: None
    found: dict[str, Found] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    conversations: int = 0
    messages: int = 0

    def look_at(self, batch: Mapping[int, int]) -> None:
        """Look through these conversations; the batch says how many messages each has."""
        for invariant in self.invariants:
            if not invariant.of_the_site:
                self._add(invariant.code, partial(invariant.look, list(batch), thorough=self.thorough))
        self.conversations += len(batch)
        self.messages += sum(batch.values())

    def look_at_the_site(self, workspace_id: int | None) -> None:
        """Look through what belongs to no conversation: that of a workspace, or, with None, everything."""
        for invariant in self.invariants:
            if invariant.of_the_site:
                self._add(invariant.code, partial(invariant.find, workspace_id))

    def _add(self, code: str, look: Callable[[], Found]) -> None:
        started = time.perf_counter()
        self.found[code] = self.found.get(code, Found()) + look()
        taken = time.perf_counter() - started
        self.seconds[code] = self.seconds.get(code, 0.0) + taken
        self.rest(taken)

    @property
    def counts(self) -> dict[str, int]:
        """How often each invariant is broken."""
        return {code: found.count for code, found in self.found.items()}

    @property
    def costs(self) -> dict[str, int]:
        """How many milliseconds each took."""
        return {code: round(1000 * seconds) for code, seconds in self.seconds.items()}

    @property
    def places(self) -> set[tuple[str, Finding]]:
        """Every finding that is listed, with the code of its invariant."""
        return {(code, finding) for code, found in self.found.items() for finding in found.findings}

    def lists_all(self, code: str) -> bool:
        """Whether every finding of this invariant is listed."""
        found = self.found.get(code, Found())
        return len(found.findings) == found.count

    def is_clean(self, conversation_id: int) -> bool:
        """Whether nothing was found in this conversation; false, to be safe, where not every finding is listed."""
        return not any(
            not self.lists_all(code) or any(each.conversation_id == conversation_id for each in found.findings)
            for code, found in self.found.items()
        )


def batches_of(rows: QuerySet[Conversation]) -> Iterator[dict[int, int]]:
    """The conversations' ids with the number of their messages, in the order of their ids, some at a time."""
    batch: dict[int, int] = {}
    in_order = rows.order_by("conversation_id").values_list("conversation_id", "next_seq")
    for id, next_seq in in_order.iterator(chunk_size=BATCH_CONVERSATIONS):
        batch[id] = next_seq - 1
        if len(batch) == BATCH_CONVERSATIONS or sum(batch.values()) >= BATCH_MESSAGES:
            yield batch
            batch = {}
    if batch:
        yield batch
