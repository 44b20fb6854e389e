"""Slots of an active context as the pure modules take them, and steps that are followed without a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import strategies as st

from compaction.planning.planner import Slot
from compaction.planning.steps import Step, Steps
from conversations.types import Role


def raw(ordinal: int, role: Role = Role.ASSISTANT, *, tokens: int = 500, calls: str = "", answer: bool = False) -> Slot:
    return Slot(
        ordinal=ordinal, tokens=tokens, message_id=ordinal, role=role, calls=tuple(calls.split()), is_answer=answer
    )


def summary(ordinal: int, depth: int = 0, *, tokens: int = 600) -> Slot:
    return Slot(ordinal=ordinal, tokens=tokens, summary_id=f"sum_{ordinal}", depth=depth)


def chat(count: int, **options: int) -> list[Slot]:
    return [raw(n, Role.USER if n % 2 else Role.ASSISTANT, **options) for n in range(1, count + 1)]


def ordinals(slots: Iterable[Slot]) -> list[int]:
    return [slot.ordinal for slot in slots]


def follow(steps: Steps, make: Callable[[Step], Slot | None]) -> list[Step]:
    """Make what each step proposes, to the end; all that were proposed."""
    proposed: list[Step] = []
    made: Slot | None = None
    while True:
        try:
            step = steps.send(made)
        except StopIteration:
            return proposed
        proposed.append(step)
        made = make(step)


slots_strategy = st.lists(
    st.tuples(
        st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL, Role.SYSTEM, None]),
        st.integers(1, 3000),
        st.sets(st.sampled_from("abcd"), max_size=2),
        st.integers(0, 3),
    ),
    max_size=80,
).map(
    lambda drawn: [
        raw(n, role, tokens=tokens, calls=" ".join(sorted(calls))) if role else summary(n, depth, tokens=tokens)
        for n, (role, tokens, calls, depth) in enumerate(drawn, start=1)
    ]
)
