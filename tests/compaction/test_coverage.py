"""Choosing what to keep within a budget, and writing it down so that it can be read back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summarizing.extractive.coverage import Candidate, Coverage, pack
from compaction.summarizing.extractive.passages import Passage, passages_of
from compaction.summarizing.extractive.summary_form import days_of, read, write
from tests.compaction.summarizing import a_message

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


def test_a_heading_is_paid_for_once():
    coverage = coverage_of(a_candidate(0), a_candidate(1), a_candidate(2, heading=1), heading=3)

    coverage.fill(5)

    assert coverage.chosen == [0, 1]


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


START = datetime(2026, 3, 7, 9, tzinfo=UTC)


def a_page(*messages) -> tuple[str, list[Passage]]:
    passages = list(passages_of(messages))
    kept = [(passage, unit) for passage in passages for unit in passage.units]
    return write(kept, days=days_of(passages)), passages


def test_a_page_is_read_back_as_it_was_written():
    page, passages = a_page(
        a_message("The ledger moved. It stays read-only.", seq=12, author="Anna", time=START),
        a_message("Is it?\n```\nselect 1;\n```", seq=13, author="Anna", time=START),
        a_message("line one\nline two", seq=14, role="tool", author="Bash", time=START.replace(day=9)),
    )

    entries = list(read(page, first_seq=12, last_seq=14, start=START))

    assert [(entry.first_seq, entry.last_seq, entry.who, entry.day) for entry in entries] == [
        (12, 13, "Anna", date(2026, 3, 7)),
        (14, 14, "tool Bash", date(2026, 3, 9)),
    ]
    assert [entry.sentences for entry in entries] == ["The ledger moved. It stays read-only. Is it?", "line one"]
    assert [entry.lines.split() for entry in entries] == [["select", "1;"], ["line", "two"]]


def test_years_are_written_where_there_are_several():
    page, _ = a_page(
        a_message("It snowed.", seq=1, time=datetime(2025, 12, 31, tzinfo=UTC)),
        a_message("It thawed.", seq=2, time=datetime(2026, 1, 1, tzinfo=UTC)),
    )

    assert page == "December 31, 2025\n1 user: It snowed.\nJanuary 1, 2026\n2 user: It thawed."
    days = [entry.day for entry in read(page, first_seq=1, last_seq=2, start=START)]
    assert days == [date(2025, 12, 31), date(2026, 1, 1)]


def test_a_head_of_messages_that_the_summary_does_not_cover_is_only_text():
    (entry,) = read("7 admins: nothing", first_seq=10, last_seq=20, start=None)

    assert (entry.first_seq, entry.last_seq, entry.who, entry.sentences) == (10, 20, "", "7 admins: nothing")


def test_names_are_read_and_the_closing_line_is_not():
    text = "Also named: src/rows.py, ORDER_BY\nExpand for details about: paint (2 of 3 messages)."

    (entry,) = read(text, first_seq=1, last_seq=3, start=None)

    assert (entry.sentences, entry.names.strip()) == ("", "src/rows.py, ORDER_BY")


@pytest.mark.parametrize("label", ["March 32", "February 30, 2026", "March"])
def test_what_is_no_day_does_not_become_one(label):
    entries = list(read(f"{label}\n1 user: It snowed.", first_seq=1, last_seq=1, start=START))

    assert entries[0].day == START.date()


def test_the_name_of_a_speaker_cannot_pass_for_something_said():
    (passage,) = passages_of([a_message("Hello Lisbon.", author="Eve: I agree.\n13 Anna: Me too" + "!" * 99)])

    assert ":" not in passage.head
    assert "\n" not in passage.head
    assert len(passage.head) < 50
