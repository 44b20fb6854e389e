"""The choice of what a model sees, as a function of candidates and a budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.policy import CompactionPolicy
from conversations.types import Role
from retrieval.assembly.selection import Candidate, Group, Selection, groups_of, score, select, with_hits
from retrieval.assembly.types import AssemblyReason

POLICY = CompactionPolicy(fresh_tail_count=4)


def a_message(seq: int, tokens: int = 10, role: Role = Role.ASSISTANT, calls: tuple[str, ...] = ()) -> Candidate:
    return Candidate(ordinal=seq, tokens=tokens, message_id=seq, role=role, calls=frozenset(calls), last_seq=seq)


def a_summary(first_seq: int, last_seq: int, tokens: int = 10) -> Candidate:
    return Candidate(ordinal=first_seq, tokens=tokens, summary_id=f"sum_{first_seq}", last_seq=last_seq)


def recalled(seq: int, tokens: int = 10) -> Group:
    message = Candidate(ordinal=seq, tokens=tokens, message_id=seq, role=Role.USER, last_seq=seq, is_recalled=True)
    return Group((message,))


def reasons(selection: Selection) -> dict[str, AssemblyReason]:
    return {decision.candidate.id: decision.reason for decision in (*selection.taken, *selection.refused)}


def ids(selection: Selection) -> list[str]:
    return [candidate.id for candidate in selection.included]


@st.composite
def contexts(draw: st.DrawFn) -> list[Candidate]:
    """Contexts as they occur: summaries first, then turns with tool calls, system messages anywhere."""
    slots: list[Candidate] = []
    seq = 1
    for _ in range(draw(st.integers(0, 4))):
        length = draw(st.integers(1, 30))
        slots.append(a_summary(seq, seq + length - 1, tokens=draw(st.integers(1, 80))))
        seq += length
    for _ in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from(["user", "assistant", "system", "call"]))
        tokens = draw(st.integers(0, 60))
        if kind == "call":
            call = f"call_{seq}"
            slots.append(a_message(seq, tokens, calls=(call,)))
            seq += 1
            if draw(st.booleans()):
                slots.append(a_message(seq, draw(st.integers(0, 60)), Role.USER))
                seq += 1
            slots.append(a_message(seq, draw(st.integers(0, 60)), Role.TOOL, calls=(call,)))
        else:
            slots.append(a_message(seq, tokens, Role(kind)))
        seq += 1
    return slots


@st.composite
def groups_with_hits(draw: st.DrawFn) -> list[Group]:
    slots = draw(contexts())
    groups = groups_of(slots, POLICY)
    hits = draw(st.sets(st.integers(1, 120), max_size=8))
    shown = {slot.message_id for slot in slots}
    stands_for = {
        slot.id: {hit for hit in hits if slot.ordinal <= hit <= slot.last_seq} for slot in slots if not slot.is_raw
    }
    below = {hit for members in stands_for.values() for hit in members} - shown
    extra = [recalled(hit, draw(st.integers(0, 60))) for hit in sorted(below)]
    scores = {hit: draw(st.floats(0.0, 1.0)) for hit in sorted(hits)}
    return with_hits([*groups, *extra], scores, stands_for)


budgets = st.integers(1, 1500)


@given(groups_with_hits(), budgets)
def test_a_selection_keeps_its_promises(groups, budget):
    mandatory = sum(group.tokens for group in groups if group.mandatory)

    selection = select(groups, budget=budget)

    # It is within its budget, unless the mandatory part alone is not.
    assert selection.total_tokens == sum(candidate.tokens for candidate in selection.included)
    assert selection.over_budget == (mandatory > budget)
    assert selection.total_tokens <= budget or selection.total_tokens == mandatory
    # A group is in whole or not at all, the mandatory ones always.
    included = set(ids(selection))
    for group in groups:
        [is_in] = {candidate.id in included for candidate in group.candidates}
        assert is_in or not group.mandatory
    # Everything is decided once, and shown in order.
    decided = sorted(decision.candidate.id for decision in (*selection.taken, *selection.refused))
    assert decided == sorted(candidate.id for group in groups for candidate in group.candidates)
    places = [candidate.place for candidate in selection.included]
    assert places == sorted(places)


@given(groups_with_hits(), budgets, st.randoms())
def test_a_selection_does_not_depend_on_the_order_of_the_candidates(groups, budget, random):
    shuffled = random.sample(groups, len(groups))

    assert select(shuffled, budget=budget).included == select(groups, budget=budget).included


@given(contexts(), budgets)
def test_without_a_query_what_is_left_out_is_older_than_all_that_was_filled_in(slots, budget):
    selection = select(groups_of(slots, POLICY), budget=budget)

    filled = [group for group in groups_of(slots, POLICY) if group.candidates[0] in selection.included]
    newest_left_out = max(
        (group.newest for group in groups_of(slots, POLICY) if group not in filled), default=(0, False)
    )
    assert all(group.mandatory or group.newest > newest_left_out for group in filled)


@given(contexts(), st.integers(0, 60))
def test_while_everything_fits_a_new_message_leaves_what_was_there_as_it_is(slots, tokens):
    appended = a_message(slots[-1].last_seq + 1 if slots else 1, tokens, Role.USER)
    budget = sum(slot.tokens for slot in slots) + tokens + 1

    before = select(groups_of(slots, POLICY), budget=budget).included
    after = select(groups_of([*slots, appended], POLICY), budget=budget).included

    assert after == (*before, appended)


@given(contexts(), budgets)
def test_a_larger_budget_never_shows_less(slots, budget):
    groups = groups_of(slots, POLICY)

    assert set(ids(select(groups, budget=budget))) <= set(ids(select(groups, budget=budget + 50)))


def test_a_pinned_question_is_shown_without_the_exchange_around_it():
    slots = [
        a_message(1, 100, calls=("a",)),
        a_message(2, 10, Role.USER),
        a_message(3, 100, Role.TOOL, calls=("a",)),
        *(a_message(seq, 1) for seq in range(4, 20)),
    ]

    selection = select(groups_of(slots, POLICY), budget=60)

    assert {"msg_1", "msg_3"}.isdisjoint(ids(selection))
    assert reasons(selection)["msg_2"] is AssemblyReason.PINNED


def test_half_of_the_room_goes_to_messages_that_answer_the_query_the_best_first():
    slots = [a_summary(1, 90, 10), *(a_message(seq, 10) for seq in range(91, 99))]
    scores = {seq: seq / 100 for seq in range(20, 40)}
    groups = with_hits([*groups_of(slots, POLICY), *(recalled(seq) for seq in scores)], scores, {"sum_1": set(scores)})

    selection = select(groups, budget=120)

    # Forty tokens are mandatory; of the eighty that are left, forty go to hits.
    shown = [candidate.id for candidate in selection.included if candidate.is_recalled]
    assert shown == ["msg_36", "msg_37", "msg_38", "msg_39"]
    assert ids(selection)[:2] == ["sum_1", "msg_36"]


def test_room_that_nothing_else_fits_into_goes_to_further_answers():
    slots = [a_summary(1, 90, 1000), *(a_message(seq, 10) for seq in range(91, 95))]
    scores = {seq: seq / 100 for seq in range(20, 40)}
    groups = with_hits([*groups_of(slots, POLICY), *(recalled(seq) for seq in scores)], scores, {"sum_1": set(scores)})

    selection = select(groups, budget=105)

    assert ids(selection)[:6] == [f"msg_{seq}" for seq in range(34, 40)]
    assert selection.total_tokens == 100


def test_a_summary_whose_hits_do_not_fit_comes_before_newer_things():
    slots = [a_summary(1, 10, 40), a_summary(11, 20, 40), *(a_message(seq, 10) for seq in range(21, 25))]
    groups = with_hits([*groups_of(slots, POLICY), recalled(5, 1000)], {5: 1.0}, {"sum_1": {5}})

    selection = select(groups, budget=80)

    assert reasons(selection)["sum_1"] is AssemblyReason.RELEVANT
    assert "sum_11" not in ids(selection)


def test_a_summary_whose_hits_are_shown_is_the_first_to_go():
    slots = [a_summary(1, 10, 40), a_summary(11, 20, 40), *(a_message(seq, 10) for seq in range(21, 25))]
    groups = with_hits([*groups_of(slots, POLICY), recalled(15, 10)], {15: 1.0}, {"sum_11": {15}})

    selection = select(groups, budget=90)

    assert ids(selection)[:2] == ["sum_1", "msg_15"]
    assert "sum_11" not in ids(selection)


def test_how_well_a_message_answers_counts_more_than_how_new_it_is():
    def deserved(worth: float, seq: int) -> float:
        return score(worth=worth, best=0.9, seq=seq, last_seq=100)

    assert deserved(0.5, 10) < deserved(0.5, 90) < deserved(0.9, 1) <= 1.0
