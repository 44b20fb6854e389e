"""Which steps are proposed against which findings, decided from them and a few facts alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from integrity.repairs.repair_planning import Facts, FindingKey, Step, propose
from integrity.types import Risk

KNOWN = frozenset({7, 8})
CYCLE = FindingKey("lineage_has_no_cycle", 7, "sum_1")
CONTEXT = FindingKey("context_is_what_lineage_says", 7, "msg_1")
GAP = FindingKey("messages_are_complete", 7, "seq_3")
SUMMARY = FindingKey("summaries_match_their_hashes", 7, "sum_1")
COUNTERS = [FindingKey("counters_are_recounts", 7, name) for name in ("total_tokens", "chain_head", "cold_messages")]


class Case(NamedTuple):
    """Findings, the steps against them, what is left to a person, and what else is known."""

    places: list[FindingKey]
    steps: list[tuple[Step, str]]
    left: tuple[str, ...] = ()
    facts: dict[str, Any] = {}


CASES = {
    "no context is made of a lineage that is wrong itself": Case(
        [CYCLE, CONTEXT, FindingKey("context_is_what_lineage_says", 8, "msg_9")],
        [(Step.QUARANTINE, "sum_1"), (Step.REBUILD_CONTEXT, "conv_8")],
        ("msg_1",),
    ),
    "what counts missing messages is not counted again": Case(
        [GAP, *COUNTERS],
        [(Step.QUARANTINE, "seq_7_3"), (Step.RECOUNT, "cold_messages")],
        ("total_tokens", "chain_head"),
    ),
    "rows that a ledger has are put back before anything is made of them": Case(
        [GAP, SUMMARY],
        [(Step.RESTORE_FROM_LEDGER, "seq_3"), (Step.REBUILD_CONTEXT, "conv_7")],
        ("sum_1",),
        {"restorable": frozenset({(7, "seq_3")})},
    ),
    "a summary whose text alone is wrong is made again": Case(
        [SUMMARY],
        [(Step.QUARANTINE, "sum_1"), (Step.REDO_SUMMARY, "sum_1")],
        facts={"remakeable": frozenset({"sum_1"})},
    ),
    "a summary with wrong sources, too, is not": Case(
        [SUMMARY, FindingKey("sources_are_numbered_from_zero", 7, "sum_1")],
        [(Step.QUARANTINE, "sum_1")],
        facts={"remakeable": frozenset({"sum_1"})},
    ),
    "nor is one that is not in the context": Case([SUMMARY], [(Step.QUARANTINE, "sum_1")]),
    "what is quarantined already is left to a person": Case(
        [SUMMARY], [], ("sum_1",), {"quarantined": frozenset({"sum_1"})}
    ),
    "what is of a conversation that is gone is left to a person": Case(
        [FindingKey("contents_match_their_hashes", 9, "msg_1")], [], ("msg_1",)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_steps_are_proposed_in_order_and_the_rest_is_left(case):
    proposals, unplanned = propose(case.places, Facts(conversations=KNOWN, **case.facts))

    assert [(each.operation, each.target) for each in proposals] == case.steps
    assert tuple(each.id for each in unplanned) == case.left


def test_one_step_mends_many_findings_and_names_them():
    others = [
        FindingKey("messages_are_reachable_once", 7, "msg_1"),
        FindingKey("context_is_what_lineage_says", 7, "msg_2"),
    ]
    # Rebuilding a context recounts it.
    recount = FindingKey("counters_are_recounts", 7, "active_tokens")

    [proposal], _ = propose([CONTEXT, *others, recount], Facts(conversations=KNOWN))

    assert (proposal.operation, proposal.target) == (Step.REBUILD_CONTEXT, "conv_7")
    assert proposal.codes == ["context_is_what_lineage_says", "messages_are_reachable_once"]


def test_what_may_be_all_that_tells_of_lost_messages_is_a_high_risk():
    proposals, _ = propose(COUNTERS, Facts(conversations=KNOWN))

    risks = {proposal.target: proposal.risk for proposal in proposals}
    assert risks == {"chain_head": Risk.HIGH, "total_tokens": Risk.LOW, "cold_messages": Risk.LOW}


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
    proposals, [left] = propose([FindingKey(code, 7, id)], Facts(conversations=KNOWN))

    assert (proposals, left.id) == ([], id)
    assert why in left.why
