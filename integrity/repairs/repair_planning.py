"""Decide on repair steps for findings, and list findings without a step; no I/O.

No step edits, renumbers or deletes appended messages. A step can compute derived rows again, restore a value that a
hash proves, quarantine a damaged item until a person has an intact copy, or close abandoned work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from integrity.types import Risk, Unplanned


class Step(StrEnum):
    """The kinds of steps, in the order of execution: each builds on the earlier ones."""

    RESTORE_FROM_LEDGER = "restore_from_ledger"
    RELINK = "relink"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    REDO_SUMMARY = "redo_summary"
    REDO_HISTORY = "redo_history"
    REBUILD_CONTEXT = "rebuild_context"
    RECOUNT = "recount"
    MEND_RUN = "mend_run"
    CLOSE_JOB = "close_job"
    CLOSE_HISTORY_JOB = "close_history_job"
    CLOSE_RUN = "close_run"
    EXPIRE_GRANT = "expire_grant"


# For each kind of step: how much damage a wrong step could do, and the reason that the plan shows.
REASONS: Mapping[Step, tuple[Risk, str]] = {
    Step.RESTORE_FROM_LEDGER: (Risk.HIGH, "The ledger has it with matching hashes; only that text is restored."),
    Step.RELINK: (Risk.LOW, "Its hash proves which sources it lost; they are linked again."),
    Step.QUARANTINE: (Risk.MEDIUM, "It is damaged. No model is shown it until it is restored; its row stays."),
    Step.RELEASE: (Risk.LOW, "The item that it withholds does not exist."),
    Step.REDO_SUMMARY: (Risk.MEDIUM, "Its sources are intact, so it can be made again; the new summary supersedes it."),
    Step.REDO_HISTORY: (
        Risk.LOW,
        "What it rests on is intact, so it can be made again; the new summary supersedes it.",
    ),
    Step.REBUILD_CONTEXT: (
        Risk.MEDIUM,
        "The context is derived from messages, summaries and links, and is rebuilt from them.",
    ),
    Step.RECOUNT: (Risk.LOW, "It can be counted again."),
    Step.MEND_RUN: (Risk.LOW, "The saving of the run is correct; its starting figure was read too early."),
    Step.CLOSE_JOB: (Risk.LOW, "No worker is running it; the sweep requests remaining work again."),
    Step.CLOSE_HISTORY_JOB: (Risk.LOW, "No worker is running it; the sweep requests remaining work again."),
    Step.CLOSE_RUN: (Risk.LOW, "No worker is running it; what it wrote is complete and stays."),
    Step.EXPIRE_GRANT: (Risk.LOW, "A grant that should have ended is revoked."),
}

# Counters that may be the only evidence of missing messages.
_EVIDENCE = frozenset({"chain_head", "next_seq"})
_OF_MESSAGES = frozenset({*_EVIDENCE, "total_tokens"})
_OF_CONTEXT = frozenset({"active_messages", "active_tokens"})
_RECOUNT_OF_EVIDENCE = (
    Risk.HIGH,
    "It can be counted again. But if the newest messages were removed, it may be the only evidence: compare it with a "
    "ledger or a backup first.",
)

# Invariants whose findings are each repaired by one step of their own.
_ONE_STEP = {
    "grants_come_to_an_end": Step.EXPIRE_GRANT,
    "history_work_comes_to_an_end": Step.CLOSE_HISTORY_JOB,
    "quarantines_hold_what_there_is": Step.RELEASE,
    "runs_add_up": Step.MEND_RUN,
}

# Invariants whose findings in one conversation are all repaired by one step: rebuilding its context.
_CONTEXT = frozenset(
    {"context_points_at_rows", "context_is_what_lineage_says", "nothing_is_shown_twice", "messages_are_reachable_once"}
)
_TEXTS = frozenset(
    {
        "contents_match_their_hashes",
        "metadata_match_their_hashes",
        "parts_match_their_hashes",
        "entries_match_their_hashes",
        "chains_are_unbroken",
        "cold_texts_match_their_hashes",
        "cold_messages_point_at_their_block",
        "recording_never_goes_back",
        "texts_leave_by_recorded_acts",
        "token_counts_are_recounts",
        "files_are_stored_whole",
        "messages_are_complete",
        "ordinals_are_unique",
    }
)
_LINEAGE = frozenset(
    {
        "summaries_match_their_hashes",
        "summaries_have_sources",
        "lineage_stays_in_its_conversation",
        "lineage_has_no_cycle",
        "summaries_know_what_they_cover",
        "redone_summaries_stand_for_the_same",
        "sources_are_numbered_from_zero",
    }
)
# Invariants of session, arc and epoch summaries. A new summary that supersedes the damaged one repairs the findings.
_HISTORY = frozenset(
    {
        "session_summaries_match_their_hashes",
        "sessions_reach_every_message",
        "history_sources_are_numbered_from_zero",
        "history_knows_what_it_covers",
        "history_rests_on_its_own",
        "erased_history_holds_no_text",
    }
)
# Invariants whose findings can be repaired without a conversation, or when it does not exist.
_OF_THE_SITE = frozenset({"grants_come_to_an_end", "history_work_comes_to_an_end"})
# Invariants whose findings only a person can resolve, with the advice that the plan shows.
_BY_HAND: Mapping[str, str] = {
    "rows_match_their_seals": (
        "The row was changed past the triggers, and its seal does not reveal the recorded values. Compare it with a"
        " ledger or a backup: with the recorded values the seal matches again."
    ),
    "site_rows_match_their_seals": (
        "The row was changed past the triggers, and its seal does not reveal the recorded values. Compare it with a"
        " backup. Revoke a key or a membership that cannot be trusted, and issue a new one."
    ),
    "emptied_rows_hold_no_text": (
        "The original text is in its cold block, or erased; the row holds another text. Empty it by hand."
    ),
    "vectors_leave_with_their_texts": (
        "Its vectors still tell what it is about. Remove them with `lcm embed drop`, and make the others again with"
        " `lcm embed setup`."
    ),
    "parts_have_the_names_of_their_place": "Its id contradicts its place; compare with a ledger or a backup.",
    "acts_are_chained": "The audit log is evidence and is never repaired: compare it with an anchor and a backup.",
    "history_has_one_line": "Which of its rows came first is not recorded elsewhere; compare with a backup.",
    "history_keeps_its_members": "The rows of its members were changed; compare with a backup.",
    "history_tokens_are_recounts": (
        "The row is never changed, and its text is intact; the next summary of the same has a count of its own."
    ),
    "audited_rows_are_there": "The row was removed; only a backup has it.",
    "audited_site_rows_are_there": "The row was removed; only a backup has it. A missing key grants no access.",
}
# Invariants that are broken if links between summaries and sources are wrong.
_ENTANGLING = _LINEAGE - {"summaries_match_their_hashes", "redone_summaries_stand_for_the_same"}
# Invariants whose findings a ledger may help to repair.
RESTORABLE = frozenset(
    {
        "messages_are_complete",
        "contents_match_their_hashes",
        "metadata_match_their_hashes",
        "parts_match_their_hashes",
        "entries_match_their_hashes",
        "summaries_match_their_hashes",
        "cold_texts_match_their_hashes",
        "records_match_their_hashes",
        "references_lead_to_their_files",
    }
)
# Invariants about values other than the text. As the text is intact, a quarantine would do more harm than good.
_BESIDE_THE_TEXT = frozenset({"records_match_their_hashes", "references_lead_to_their_files"})


@dataclass(frozen=True)
class FindingKey:
    """The fields of a finding that planning needs."""

    code: str
    conversation_id: int | None
    id: str

    @property
    def item(self) -> tuple[int | None, str]:
        return self.conversation_id, self.id


@dataclass(frozen=True)
class Facts:
    """What the rows say about the ids in the findings; the input of the planner."""

    # Items that a ledger has with matching hashes.
    restorable: frozenset[tuple[int | None, str]] = frozenset()
    # Summaries that lost links to sources, where the summary's hash proves which sources.
    relinkable: frozenset[str] = frozenset()
    # Summaries that can be regenerated: they are in the context, and no other summary supersedes them.
    remakeable: frozenset[str] = frozenset()
    # Session, arc and epoch summaries that are damaged and can be regenerated: current, not erased.
    remakeable_history: frozenset[str] = frozenset()
    # Session, arc and epoch summaries that another summary supersedes.
    superseded_history: frozenset[str] = frozenset()
    # Ids that are quarantined already.
    quarantined: frozenset[str] = frozenset()
    # Messages directly after a gap: without the missing message, their chain_hash cannot be verified.
    after_gaps: frozenset[str] = frozenset()
    # Conversations that exist.
    conversations: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Proposal:
    """One step, without the values before and after."""

    operation: Step
    conversation_id: int | None
    target: str
    risk: Risk
    why: str
    codes: list[str]


class _Draft:
    """The plan so far: steps, and findings that only a person can resolve."""

    def __init__(self, findings: Sequence[FindingKey], facts: Facts) -> None:
        self.facts = facts
        self.codes: dict[tuple[Step, int | None, str], list[str]] = {}
        self.unplanned: list[Unplanned] = []
        gaps = [each for each in findings if each.code == "messages_are_complete" and each.id.startswith("seq_")]
        lineage = [finding for finding in findings if finding.code in _LINEAGE]
        tangled = [finding for finding in lineage if finding.code in _ENTANGLING and finding.id not in facts.relinkable]
        # Conversations with missing messages, and those for which the ledger has the missing messages.
        self.incomplete = {finding.conversation_id for finding in gaps}
        self.completed = {finding.conversation_id for finding in gaps if finding.item in facts.restorable}
        # Conversations with lost links that a hash proves, and those with other wrong links, which give no context.
        self.relinked = {finding.conversation_id for finding in lineage if finding.id in facts.relinkable}
        self.entangled = {finding.conversation_id for finding in tangled}
        # Summaries that are damaged in more than the text, such as in links or counts.
        self.misplaced = {finding.id for finding in lineage if finding.code != "summaries_match_their_hashes"}
        # Arcs and epochs with foreign members. A new session summary does not use the old links, but its conversation.
        self.misplaced_history = {
            finding.id
            for finding in findings
            if finding.code == "history_rests_on_its_own" and finding.conversation_id is None
        }

    def add(self, step: Step, finding: FindingKey, target: str | None = None) -> None:
        codes = self.codes.setdefault((step, finding.conversation_id, target or finding.id), [])
        if finding.code not in codes:
            codes.append(finding.code)

    def leave(self, finding: FindingKey, why: str) -> None:
        self.unplanned.append(Unplanned(finding.code, finding.conversation_id, finding.id, why))


def propose(findings: Sequence[FindingKey], facts: Facts) -> tuple[list[Proposal], list[Unplanned]]:
    """Return the steps in order, and the findings that only a person can resolve."""
    draft = _Draft(findings, facts)
    for finding in findings:
        _treat(finding, draft)
    rebuilt = {conversation_id for step, conversation_id, _ in draft.codes if step is Step.REBUILD_CONTEXT}
    proposals = []
    for (step, conversation_id, target), codes in draft.codes.items():
        # Rebuilding a context also recounts it, so no separate step is needed.
        if not (step is Step.RECOUNT and target in _OF_CONTEXT and conversation_id in rebuilt):
            risk, why = _RECOUNT_OF_EVIDENCE if step is Step.RECOUNT and target in _EVIDENCE else REASONS[step]
            proposals.append(Proposal(step, conversation_id, target, risk, why, codes))
    order = list(Step)
    proposals.sort(key=lambda each: (order.index(each.operation), each.conversation_id or 0, each.target))
    return proposals, draft.unplanned


def _treat(finding: FindingKey, draft: _Draft) -> None:
    facts = draft.facts
    if finding.code in _BY_HAND:
        draft.leave(finding, _BY_HAND[finding.code])
    elif finding.code in _HISTORY:
        _treat_history(finding, draft)
    elif finding.code not in _OF_THE_SITE and finding.conversation_id not in facts.conversations:
        draft.leave(finding, "Its conversation is missing; only a backup, or an import of its ledger, restores it.")
    elif finding.code in _CONTEXT or (finding.code == "ordinals_are_unique" and finding.id.startswith("ordinal_")):
        _treat_context(finding, draft)
    elif finding.code == "counters_are_recounts":
        if finding.conversation_id in draft.incomplete and finding.id in _OF_MESSAGES:
            draft.leave(finding, "It counts missing messages; closing the gap repairs it.")
        else:
            draft.add(Step.RECOUNT, finding)
    elif finding.code == "work_comes_to_an_end":
        draft.add(Step.CLOSE_JOB if finding.id.startswith("job_") else Step.CLOSE_RUN, finding)
    elif finding.code in _ONE_STEP:
        draft.add(_ONE_STEP[finding.code], finding)
    elif finding.code == "recording_never_goes_back" and finding.id.startswith("conv_"):
        draft.leave(finding, "Set its updated_at to the time of its newest message, before the next append.")
    elif finding.code == "chains_are_unbroken" and finding.id in facts.after_gaps:
        draft.leave(finding, "It follows a gap and is itself intact; closing the gap repairs it.")
    elif finding.code == "cold_texts_match_their_hashes" and finding.id.startswith("cold_"):
        draft.leave(finding, "Each of its messages is a separate finding with its own step.")
    elif finding.code in RESTORABLE and finding.item in facts.restorable:
        draft.add(Step.RESTORE_FROM_LEDGER, finding)
        if finding.id.startswith("seq_"):
            # Restored messages return to the context.
            draft.add(Step.REBUILD_CONTEXT, finding, f"conv_{finding.conversation_id}")
    elif finding.code in _BESIDE_THE_TEXT:
        draft.leave(finding, "Its text is intact; a ledger or a backup has its other values.")
    elif finding.code in _LINEAGE:
        _treat_summary(finding, draft)
    elif finding.code in _TEXTS:
        _withhold(finding, draft)
    else:
        draft.leave(finding, "There is no step for it.")


def _treat_context(finding: FindingKey, draft: _Draft) -> None:
    if finding.conversation_id in draft.entangled:
        draft.leave(finding, "Links of its lineage are wrong, and a context derived from them would be incomplete.")
    elif finding.conversation_id in draft.relinked:
        draft.leave(finding, "It follows from missing links; check again when they are restored.")
    else:
        draft.add(Step.REBUILD_CONTEXT, finding, f"conv_{finding.conversation_id}")


def _treat_summary(finding: FindingKey, draft: _Draft) -> None:
    if finding.conversation_id in draft.completed:
        draft.leave(finding, "Messages are missing that may be its sources; check again when they are restored.")
    elif finding.id in draft.facts.relinkable:
        draft.add(Step.RELINK, finding)
    else:
        _withhold(finding, draft)
        # Only its text is damaged and its sources are intact, so it can be regenerated.
        if finding.id in draft.facts.remakeable - draft.misplaced:
            draft.add(Step.REDO_SUMMARY, finding)


def _treat_history(finding: FindingKey, draft: _Draft) -> None:
    if finding.id in draft.facts.superseded_history:
        draft.leave(finding, "It was made again since. This row stays as it is; only a backup has the recorded one.")
    elif finding.id not in draft.facts.remakeable_history:
        draft.leave(finding, "It is erased, or what it rests on is damaged; repair that first and check again.")
    elif finding.id in draft.misplaced_history:
        draft.leave(
            finding, "Its members were exchanged, and a new row would rest on them, too; compare with a backup."
        )
    else:
        draft.add(Step.REDO_HISTORY, finding)


def _withhold(finding: FindingKey, draft: _Draft) -> None:
    # A gap is quarantined under an id such as `seq_7_33`: conversation 7, seq 33.
    is_gap = finding.id.startswith("seq_")
    target = f"seq_{finding.conversation_id}_{finding.id.removeprefix('seq_')}" if is_gap else finding.id
    if target in draft.facts.quarantined:
        draft.leave(finding, "It is quarantined already; restore it from a ledger or a backup.")
    else:
        draft.add(Step.QUARANTINE, finding, target)
