"""What could be done about findings: a list of steps, in order, and of what no step mends. Pure.

Nothing that was said is ever edited, renumbered or removed here. What is derived is derived anew; what a seal still
tells is put back; what is damaged is withheld from models until a person has found a copy; what is left open is closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from integrity.types import Risk, Unplanned


class Step(StrEnum):
    """What can be done, in the order in which it is done: what comes first is what the next ones build on."""

    RESTORE_FROM_LEDGER = "restore_from_ledger"
    RELINK = "relink"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    REDO_SUMMARY = "redo_summary"
    REBUILD_CONTEXT = "rebuild_context"
    RECOUNT = "recount"
    MEND_RUN = "mend_run"
    CLOSE_JOB = "close_job"
    CLOSE_RUN = "close_run"
    EXPIRE_GRANT = "expire_grant"


ORDER = {step: place for place, step in enumerate(Step)}

RISKS: Mapping[Step, Risk] = {
    Step.RESTORE_FROM_LEDGER: Risk.HIGH,
    Step.RELINK: Risk.LOW,
    Step.QUARANTINE: Risk.MEDIUM,
    Step.RELEASE: Risk.LOW,
    Step.REDO_SUMMARY: Risk.MEDIUM,
    Step.REBUILD_CONTEXT: Risk.MEDIUM,
    Step.RECOUNT: Risk.LOW,
    Step.MEND_RUN: Risk.LOW,
    Step.CLOSE_JOB: Risk.LOW,
    Step.CLOSE_RUN: Risk.LOW,
    Step.EXPIRE_GRANT: Risk.LOW,
}

WHY: Mapping[Step, str] = {
    Step.RESTORE_FROM_LEDGER: "The ledger has it as it was sealed; nothing else is put in its place.",
    Step.RELINK: "Its seal tells which sources it lost: they are linked again, if they make exactly that seal.",
    Step.QUARANTINE: "It is not what was said. No model is shown it until it has been restored; its row stays.",
    Step.RELEASE: "What it withholds is not there.",
    Step.REDO_SUMMARY: "Its sources are there, so that it can be made again; the new one supersedes it.",
    Step.REBUILD_CONTEXT: "The context follows from messages, summaries and links alone, and is made anew from them.",
    Step.RECOUNT: "It can be counted again.",
    Step.MEND_RUN: "What it took out of the context is right; what it started from was read too early.",
    Step.CLOSE_JOB: "Nobody is at work on it any more; the sweep asks again for what is still to be done.",
    Step.CLOSE_RUN: "Nobody is at work on it any more; what it wrote is complete and stays.",
    Step.EXPIRE_GRANT: "Leave to read that should have ended is taken back.",
}

# What may tell of messages that are gone without another trace.
_TELLTALES = frozenset({"chain_head", "next_seq"})
_OF_MESSAGES = frozenset({*_TELLTALES, "total_tokens"})
_OF_CONTEXT = frozenset({"active_messages", "active_tokens"})
_TELLTALE_WHY = (
    "It can be counted again. But where the newest messages were removed, it may be all that tells of that: compare "
    "with a ledger or a backup first."
)

# Of whole conversations, of which one step mends every finding.
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
# What only a person can judge, and why.
_BY_HAND: Mapping[str, str] = {
    "rows_match_their_seals": (
        "The row was changed past the triggers, and its seal does not tell what it said. Compare it with a ledger or a"
        " backup: with the recorded values in place the seal matches again."
    ),
    "site_rows_match_their_seals": (
        "The row was changed past the triggers, and its seal does not tell what it said. Compare it with a backup. A"
        " key or a membership that cannot be trusted is taken back and given anew."
    ),
    "emptied_rows_hold_no_text": (
        "What was said is in its cold block, or erased; what stands in the row is something else. Empty it by hand."
    ),
    "parts_have_the_names_of_their_place": "Its name contradicts its place; compare with a ledger or a backup.",
    "audited_rows_are_there": "The row was removed; only a backup has it.",
    "audited_site_rows_are_there": "The row was removed; only a backup has it. A key that is gone opens nothing.",
}
# Of these, those that say that links themselves are wrong.
_ENTANGLING = _LINEAGE - {"summaries_match_their_hashes", "redone_summaries_stand_for_the_same"}
# What a ledger may have as it was.
_RESTORABLE = frozenset(
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
# What a model is shown is what was said all the same: to withhold it would lose more than it saves.
_BESIDE_THE_TEXT = frozenset({"records_match_their_hashes", "references_lead_to_their_files"})


@dataclass(frozen=True)
class Place:
    """A finding, as far as planning needs to know it."""

    code: str
    conversation_id: int | None
    id: str


@dataclass(frozen=True)
class Facts:
    """What the rows say beyond the findings, by the ids that the findings name."""

    # What a ledger holds as it was sealed.
    restorable: frozenset[tuple[int, str]] = frozenset()
    # Summaries whose seal fits sources that they are not linked to.
    relinkable: frozenset[str] = frozenset()
    # Summaries of which a new one can be made: they stand in the context, and their links are whole.
    remakeable: frozenset[str] = frozenset()
    # What is quarantined already.
    quarantined: frozenset[str] = frozenset()
    # Messages that follow a gap: their chain breaks there, and they are as they were said.
    after_gaps: frozenset[str] = frozenset()
    # Conversations that a quarantine, or a job, can be written for.
    conversations: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Proposal:
    """One step, before anybody has looked at what it would change."""

    step: Step
    conversation_id: int | None
    target: str
    risk: Risk
    why: str
    codes: tuple[str, ...]


@dataclass(frozen=True)
class _Damage:
    """What else is wrong with the conversations of the findings: it decides what can be done about each."""

    # A seq is missing: and of these, whose ledger has it.
    incomplete: frozenset[int | None]
    completed: frozenset[int | None]
    # Links are lost that a seal tells; or links are wrong, so that no context follows from them.
    relinked: frozenset[int | None]
    entangled: frozenset[int | None]
    # What is wrong with each summary.
    of_summaries: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, places: Sequence[Place], facts: Facts) -> _Damage:
        gaps = [place for place in places if place.code == "messages_are_complete" and place.id.startswith("seq_")]
        lineage = [place for place in places if place.code in _LINEAGE]
        tangled = [place for place in lineage if place.code in _ENTANGLING and place.id not in facts.relinkable]
        return cls(
            incomplete=frozenset(place.conversation_id for place in gaps),
            completed=frozenset(
                place.conversation_id for place in gaps if (place.conversation_id, place.id) in facts.restorable
            ),
            relinked=frozenset(place.conversation_id for place in lineage if place.id in facts.relinkable),
            entangled=frozenset(place.conversation_id for place in tangled),
            of_summaries={id: frozenset(each.code for each in lineage if each.id == id) for id in _ids(lineage)},
        )


def _ids(places: Sequence[Place]) -> set[str]:
    return {place.id for place in places}


@dataclass
class _Draft:
    facts: Facts
    damage: _Damage
    codes: dict[tuple[Step, int | None, str], list[str]] = field(default_factory=dict)
    unplanned: list[Unplanned] = field(default_factory=list)

    def add(self, step: Step, place: Place, target: str | None = None) -> None:
        codes = self.codes.setdefault((step, place.conversation_id, target or place.id), [])
        if place.code not in codes:
            codes.append(place.code)

    def leave(self, place: Place, why: str) -> None:
        self.unplanned.append(Unplanned(place.code, place.conversation_id, place.id, why))


def propose(places: Sequence[Place], facts: Facts) -> tuple[list[Proposal], list[Unplanned]]:
    """The steps, in order, each for one target however many findings it mends; and what is left to a person."""
    draft = _Draft(facts, _Damage.of(places, facts))
    for place in places:
        _treat(place, draft)
    rebuilt = {conversation_id for step, conversation_id, _ in draft.codes if step is Step.REBUILD_CONTEXT}
    proposals = [
        _proposal(step, conversation_id, target, tuple(codes))
        for (step, conversation_id, target), codes in draft.codes.items()
        # Who makes a context anew counts it anew, too.
        if not (step is Step.RECOUNT and target in _OF_CONTEXT and conversation_id in rebuilt)
    ]
    return sorted(proposals, key=_in_order), draft.unplanned


def restorable_places(places: Sequence[Place]) -> set[tuple[int, str]]:
    """What a ledger may have as it was: conversations with the ids of what is not as it was."""
    return {
        (place.conversation_id, place.id)
        for place in places
        if place.code in _RESTORABLE and place.conversation_id is not None and not place.id.startswith("cold_")
    }


def _treat(place: Place, draft: _Draft) -> None:
    facts, damage = draft.facts, draft.damage
    if place.code == "grants_come_to_an_end":
        draft.add(Step.EXPIRE_GRANT, place)
    elif place.code == "acts_are_chained":
        draft.leave(place, "The audit log is evidence and is never repaired: compare it with an anchor and a backup.")
    elif place.code in _BY_HAND:
        draft.leave(place, _BY_HAND[place.code])
    elif place.conversation_id not in facts.conversations:
        draft.leave(place, "What it belongs to is gone; only a backup, or an import of its ledger, brings that back.")
    elif place.code in _CONTEXT or (place.code == "ordinals_are_unique" and place.id.startswith("ordinal_")):
        _treat_context(place, draft)
    elif place.code == "counters_are_recounts":
        if place.conversation_id in damage.incomplete and place.id in _OF_MESSAGES:
            draft.leave(place, "It counts messages that are missing; what closes the gap mends it.")
        else:
            draft.add(Step.RECOUNT, place)
    elif place.code == "work_comes_to_an_end":
        draft.add(Step.CLOSE_JOB if place.id.startswith("job_") else Step.CLOSE_RUN, place)
    elif place.code == "runs_add_up":
        draft.add(Step.MEND_RUN, place)
    elif place.code == "quarantines_hold_what_there_is":
        draft.add(Step.RELEASE, place)
    elif place.code == "recording_never_goes_back" and place.id.startswith("conv_"):
        draft.leave(place, "Set its updated_at to when its newest message was recorded, before it is appended to.")
    elif place.code == "chains_are_unbroken" and place.id in facts.after_gaps:
        draft.leave(place, "It follows a gap, and is itself as it was said; what closes the gap mends it.")
    elif place.code == "cold_texts_match_their_hashes" and place.id.startswith("cold_"):
        draft.leave(place, "Every message in it is a finding of its own, and has its own step.")
    elif place.code in _RESTORABLE and (place.conversation_id, place.id) in facts.restorable:
        draft.add(Step.RESTORE_FROM_LEDGER, place)
        if place.id.startswith("seq_"):
            # What comes back takes its place in the context again.
            draft.add(Step.REBUILD_CONTEXT, place, f"conv_{place.conversation_id}")
    elif place.code in _BESIDE_THE_TEXT:
        draft.leave(place, "What it says is as it was sealed; a ledger, or a backup, tells what else it had.")
    elif place.code in _LINEAGE:
        _treat_summary(place, draft)
    elif place.code in _TEXTS or place.code in ("messages_are_complete", "ordinals_are_unique"):
        _withhold(place, draft)
    else:
        draft.leave(place, "There is no step for it.")


def _treat_context(place: Place, draft: _Draft) -> None:
    if place.conversation_id in draft.damage.entangled:
        draft.leave(place, "Links of its lineage are wrong, and a context made from them would not show everything.")
    elif place.conversation_id in draft.damage.relinked:
        draft.leave(place, "Links are missing of which it is a consequence; check again when they are put back.")
    else:
        draft.add(Step.REBUILD_CONTEXT, place, f"conv_{place.conversation_id}")


def _treat_summary(place: Place, draft: _Draft) -> None:
    if place.conversation_id in draft.damage.completed:
        draft.leave(place, "Messages are missing that it may have been made from; check again when they are put back.")
    elif place.id in draft.facts.relinkable:
        draft.add(Step.RELINK, place)
    else:
        _withhold(place, draft)
        # Only its text is not what was sealed: what it was made from is there to make another of.
        is_text = draft.damage.of_summaries[place.id] == {"summaries_match_their_hashes"}
        if is_text and place.id in draft.facts.remakeable:
            draft.add(Step.REDO_SUMMARY, place)


def _withhold(place: Place, draft: _Draft) -> None:
    target = gap_of(place) if place.id.startswith("seq_") else place.id
    if target in draft.facts.quarantined:
        draft.leave(place, "It is quarantined already; restore it from a ledger or a backup.")
    else:
        draft.add(Step.QUARANTINE, place, target)


def gap_of(place: Place) -> str:
    """A gap among the messages as a quarantine names it: `seq_7_33` in conversation 7."""
    return f"seq_{place.conversation_id}_{place.id.removeprefix('seq_')}"


def _proposal(step: Step, conversation_id: int | None, target: str, codes: tuple[str, ...]) -> Proposal:
    is_delicate = step is Step.RECOUNT and target in _TELLTALES
    return Proposal(
        step=step,
        conversation_id=conversation_id,
        target=target,
        risk=Risk.HIGH if is_delicate else RISKS[step],
        why=_TELLTALE_WHY if is_delicate else WHY[step],
        codes=codes,
    )


def _in_order(proposal: Proposal) -> tuple[int, int, str]:
    return ORDER[proposal.step], proposal.conversation_id or 0, proposal.target
