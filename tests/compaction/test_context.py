from __future__ import annotations

import tracemalloc
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.planning.active_slots import Context
from compaction.planning.planner import MAX_ATOM_MESSAGES, Slot, each_atom
from conversations.types import Role
from tests.compaction.test_planner import slots_strategy

MANY = 20_000


def a_history() -> list[Slot]:
    """A call, its result, and so on, each with an id of its own."""
    return [
        Slot(
            ordinal=1000 + n,
            tokens=300 + n % 100,
            message_id=5000 + n,
            role=(Role.ASSISTANT, Role.TOOL)[n % 2],
            calls=(hash(f"call_{n // 2:08d}"),),
        )
        for n in range(MANY)
    ]


def kept_by(make: object) -> int:
    """The bytes that what this makes keeps in memory."""
    tracemalloc.start()
    try:
        made = make()  # type: ignore[operator]
        kept, _ = tracemalloc.get_traced_memory()
        assert made is not None
        return kept
    finally:
        tracemalloc.stop()


@given(slots=slots_strategy)
def test_a_context_gives_back_the_slots_it_was_made_of_as_often_as_it_is_asked(slots):
    context = Context(iter(slots))

    assert list(context) == list(context) == list(slots)
    assert len(context) == len(slots)


def test_it_gives_back_whatever_the_hash_of_a_call_is():
    slots = [
        Slot(ordinal=n, tokens=1, message_id=n, role=Role.ASSISTANT, calls=calls)
        for n, calls in enumerate([(0,), (), (-1,), (0, 7), (2**63 - 1,), (-(2**63), 0)], 1)
    ]

    assert list(Context(slots)) == slots


@given(answers=st.lists(st.booleans(), min_size=1))
def test_an_answer_is_told_from_a_question(answers):
    slots = [
        Slot(ordinal=n, tokens=1, message_id=n, role=Role.USER, is_answer=is_answer)
        for n, is_answer in enumerate(answers, 1)
    ]

    assert [slot.is_answer for slot in Context(slots)] == answers


def test_it_keeps_a_long_history_in_a_quarter_of_the_memory_of_its_slots():
    as_slots = kept_by(a_history)

    as_context = kept_by(lambda: Context(slot for slot in a_history()))

    assert as_context < 0.25 * as_slots


def test_atoms_are_told_without_holding_the_history():
    read = 0

    def history():
        nonlocal read
        for slot in a_history():
            read += 1
            yield slot

    first = next(each_atom(history()))

    assert len(first) == 2
    assert read <= 2 * MAX_ATOM_MESSAGES


def test_a_result_far_behind_its_call_still_draws_it_in_across_the_bound_of_an_atom():
    calls = {2: "a", 6: "a", 3: "b", MAX_ATOM_MESSAGES + 1: "b"}
    slots = [
        Slot(ordinal=n, tokens=1, message_id=n, role=Role.USER if n in (6, MAX_ATOM_MESSAGES + 1) else Role.ASSISTANT,
             calls=(hash(calls[n]),) if n in calls else ())
        for n in range(1, 3 * MAX_ATOM_MESSAGES)
    ]  # fmt: skip

    atoms = list(each_atom(slots))

    assert [slot.ordinal for slot in atoms[0]] == [1]
    assert [slot.ordinal for slot in atoms[1]] == list(range(2, MAX_ATOM_MESSAGES + 2))
    assert all(len(atom) == 1 for atom in atoms[2:])


@pytest.mark.parametrize("before", range(0, 2 * MAX_ATOM_MESSAGES + 2, 23))
def test_atoms_are_the_same_wherever_what_is_looked_ahead_ends(before):
    calls: dict[int, tuple[int, ...]] = defaultdict(tuple)
    for call in range(14):
        # The first half of them overlap, each with the next.
        for place in (131 * call + 1, 131 * call + 1 + (140 if call < 7 else 89 * call % MAX_ATOM_MESSAGES)):
            calls[place] += (call,)
    history = [
        Slot(ordinal=n, tokens=1, message_id=n, role=Role.TOOL if n % 50 == 0 else Role.USER, calls=calls[n])
        for n in range(1, 8 * MAX_ATOM_MESSAGES)
    ]
    said = [Slot(ordinal=-n, tokens=1, message_id=n, role=Role.USER) for n in range(before, 0, -1)]

    together = list(each_atom(said + history))

    assert together[:before] == [(slot,) for slot in said]
    assert together[before:] == list(each_atom(history))
