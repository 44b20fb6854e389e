from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from compaction.summarizing.extractive.coverage import Candidate, Coverage, pack

TERMS = 8


def coverage_of(*candidates: Candidate, heading: float = 0.0) -> Coverage:
    return Coverage(
        candidates=candidates,
        worth=[1.0] * TERMS,
        tokens_of=lambda index: candidates[index].tokens,
        tokens_of_heading=lambda place: heading,
    )


def a_candidate(*terms: int, tokens: float = 1, weight: float = 1.0, heading: int = 0) -> Candidate:
    return Candidate(tuple(terms), weight, heading, tokens)


any_candidates = st.lists(
    st.builds(
        Candidate,
        st.lists(st.integers(0, TERMS - 1), max_size=4, unique=True).map(tuple),
        st.sampled_from([0.5, 1.0, 3.0]),
        st.integers(0, 3),
        st.integers(1, 9),
    ),
    max_size=9,
)


def test_what_is_said_already_is_not_chosen_again():
    coverage = coverage_of(a_candidate(0, 1), a_candidate(0), a_candidate(2))

    coverage.fill(10)

    assert coverage.chosen == [0, 2]
    assert coverage.covered == {0, 1, 2}


def test_weight_decides_between_equals():
    coverage = coverage_of(a_candidate(0), a_candidate(1, weight=2.0))

    coverage.fill(1)

    assert coverage.chosen == [1]


def test_a_heading_is_paid_for_once():
    coverage = coverage_of(a_candidate(0), a_candidate(1), a_candidate(2, heading=1), heading=3)

    coverage.fill(5)

    assert coverage.chosen == [0, 1]


def test_it_goes_on_when_more_room_turns_up():
    coverage = coverage_of(a_candidate(0, 1, 2, tokens=5), a_candidate(3, tokens=2))

    assert coverage.fill(2)
    assert coverage.chosen == [1]
    assert coverage.fill(5)
    assert coverage.chosen == [1, 0]
    assert not coverage.fill(100)


def test_what_is_taken_back_is_no_longer_said():
    coverage = coverage_of(a_candidate(0), a_candidate(1))
    coverage.fill(10)

    coverage.drop(1)

    assert (coverage.chosen, coverage.covered) == ([0], {0})


@given(candidates=any_candidates, budget=st.integers(0, 30))
def test_the_budget_holds_and_nothing_is_chosen_in_vain(candidates, budget):
    coverage = coverage_of(*candidates, heading=2)

    coverage.fill(budget)

    headings = {candidates[index].heading for index in coverage.chosen}
    assert sum(candidates[index].tokens for index in coverage.chosen) + 2 * len(headings) <= budget
    said: set[int] = set()
    for index in coverage.chosen:
        assert not said.issuperset(candidates[index].terms)
        said.update(candidates[index].terms)
    assert said == coverage.covered


@given(candidates=any_candidates.filter(bool))
def test_the_lazy_choice_is_the_greedy_one(candidates):
    # Without headings a rate never rises, so looking again only at the top must find what looking at all would find.
    coverage = coverage_of(*candidates)
    coverage.fill(1)
    greedy = max(
        (
            candidate.weight * len(candidate.terms) / candidate.tokens**coverage.cost_power
            for candidate in candidates
            if candidate.tokens <= 1
        ),
        default=0,
    )

    chosen = [candidates[index] for index in coverage.chosen]

    assert [candidate.weight * len(candidate.terms) for candidate in chosen] == ([greedy] if greedy else [])


@given(candidates=any_candidates, budget=st.integers(1, 20))
def test_the_choice_is_not_far_from_the_best_there_is(candidates, budget):
    candidates = [candidate._replace(weight=1.0) for candidate in candidates]
    coverage = coverage_of(*candidates)
    coverage.fill(budget)

    def worth(chosen) -> float:
        return len({term for index in chosen for term in candidates[index].terms})

    best = max(
        worth(chosen)
        for size in range(len(candidates) + 1)
        for chosen in combinations(range(len(candidates)), size)
        if sum(candidates[index].tokens for index in chosen) <= budget
    )

    assert worth(coverage.chosen) >= best / 3


@given(
    candidates=any_candidates,
    budget=st.integers(0, 40),
    count=st.sampled_from([len, lambda text: len(text.split()), lambda text: 3 * len(text)]),
)
def test_a_packed_text_fits_whatever_counts_it(candidates, budget, count):
    text = pack(
        coverage_of(*candidates),
        render=lambda chosen: " ".join(f"item{index}" for index in chosen),
        count_tokens=count,
        budget=budget,
    )

    assert count(text) <= budget


def test_a_packed_text_uses_the_room_that_sharing_leaves():
    candidates = [a_candidate(term, tokens=10) for term in range(TERMS)]

    text = pack(coverage_of(*candidates), render=lambda chosen: "x" * 5 * len(chosen), count_tokens=len, budget=40)

    # Counted as pieces, four would have filled it.
    assert 34 <= len(text) <= 40
