"""Which steps are proposed against which findings, decided from them and a few facts alone."""

from __future__ import annotations

import pytest

from integrity.repairs.repair_planning import Facts, Place, Step, propose
from integrity.types import Risk

KNOWN = frozenset({7, 8})


def steps(*places: Place, **facts: object) -> list[tuple[Step, str]]:
    proposals, _ = propose(places, Facts(conversations=KNOWN, **facts))
    return [(proposal.operation, proposal.target) for proposal in proposals]


def left(*places: Place, **facts: object) -> list[str]:
    _, unplanned = propose(places, Facts(conversations=KNOWN, **facts))
    return [each.id for each in unplanned]


def test_one_step_mends_many_findings_and_names_them():
    [proposal], _ = propose(
        [
            Place("messages_are_reachable_once", 7, "msg_1"),
            Place("context_is_what_lineage_says", 7, "msg_1"),
            Place("context_is_what_lineage_says", 7, "msg_2"),
            Place("counters_are_recounts", 7, "active_tokens"),
        ],
        Facts(conversations=KNOWN),
    )

    # Rebuilding a context recounts it.
    assert (proposal.operation, proposal.target) == (Step.REBUILD_CONTEXT, "conv_7")
    assert proposal.codes == ["messages_are_reachable_once", "context_is_what_lineage_says"]


def test_no_context_is_made_of_a_lineage_that_is_wrong_itself():
    cycle = Place("lineage_has_no_cycle", 7, "sum_1")
    context = Place("context_is_what_lineage_says", 7, "msg_1")

    assert steps(cycle, context) == [(Step.QUARANTINE, "sum_1")]
    assert left(cycle, context) == ["msg_1"]
    assert (Step.REBUILD_CONTEXT, "conv_8") in steps(cycle, Place("context_is_what_lineage_says", 8, "msg_9"))


def test_what_counts_missing_messages_is_not_counted_again():
    gap = Place("messages_are_complete", 7, "seq_3")
    counters = [Place("counters_are_recounts", 7, name) for name in ("total_tokens", "chain_head", "cold_messages")]

    assert steps(gap, *counters) == [(Step.QUARANTINE, "seq_7_3"), (Step.RECOUNT, "cold_messages")]
    assert left(gap, *counters) == ["total_tokens", "chain_head"]


def test_what_may_be_all_that_tells_of_lost_messages_is_a_high_risk():
    proposals, _ = propose(
        [Place("counters_are_recounts", 7, name) for name in ("chain_head", "active_tokens")],
        Facts(conversations=KNOWN),
    )

    assert {proposal.target: proposal.risk for proposal in proposals} == {
        "chain_head": Risk.HIGH,
        "active_tokens": Risk.LOW,
    }


def test_rows_that_a_ledger_has_are_put_back_before_anything_is_made_of_them():
    gap = Place("messages_are_complete", 7, "seq_3")
    summary = Place("summaries_match_their_hashes", 7, "sum_1")

    assert steps(gap, summary, restorable=frozenset({(7, "seq_3")})) == [
        (Step.RESTORE_FROM_LEDGER, "seq_3"),
        (Step.REBUILD_CONTEXT, "conv_7"),
    ]


def test_only_a_summary_whose_text_alone_is_wrong_is_made_again():
    text = Place("summaries_match_their_hashes", 7, "sum_1")
    remakeable = frozenset({"sum_1"})

    assert steps(text, remakeable=remakeable) == [(Step.QUARANTINE, "sum_1"), (Step.REDO_SUMMARY, "sum_1")]
    assert steps(text, Place("sources_are_numbered_from_zero", 7, "sum_1"), remakeable=remakeable) == [
        (Step.QUARANTINE, "sum_1")
    ]
    assert steps(text) == [(Step.QUARANTINE, "sum_1")]


def test_what_is_quarantined_already_is_left_to_a_person():
    assert steps(Place("contents_match_their_hashes", 7, "msg_1"), quarantined=frozenset({"msg_1"})) == []


@pytest.mark.parametrize(
    ("code", "id", "why"),
    [
        ("rows_belong_to_something", "msg_1", "no step"),
        ("rows_match_their_seals", "sum_1", "seal does not reveal"),
        ("recording_never_goes_back", "conv_7", "updated_at"),
        ("audited_rows_are_there", "file_x", "only a backup"),
        ("acts_are_chained", "act_1", "never repaired"),
    ],
)
def test_what_no_step_repairs_is_left_to_a_person_with_the_reason(code, id, why):
    proposals, [left] = propose([Place(code, 7, id)], Facts(conversations=KNOWN))

    assert (proposals, left.id) == ([], id)
    assert why in left.why
