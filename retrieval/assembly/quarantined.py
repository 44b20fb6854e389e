"""Keeps from models what is quarantined: damaged rows, until they are put right. The receipt says so of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from conversations.models import Conversation
from conversations.sql import load, rows
from retrieval.assembly.candidates import Candidate, Decision, Group, Selection
from retrieval.assembly.context_slots import look_in
from retrieval.assembly.types import AssemblyReason


def withheld_ids(conversation: Conversation) -> frozenset[str]:
    """The messages and summaries that are not to be shown; where none is, nothing is asked."""
    if not conversation.quarantined:
        return frozenset()
    return look_in(rows(load("retrieval/assembly.sql")["withheld"], {"id": conversation.conversation_id})).withheld


def without(groups: Iterable[Group], ids: Collection[str]) -> tuple[list[Group], list[Candidate]]:
    """The groups without what is withheld, and that."""
    shown, withheld = [], []
    for group in groups:
        kept = tuple(candidate for candidate in group.candidates if candidate.id not in ids)
        withheld += [candidate for candidate in group.candidates if candidate.id in ids]
        if kept:
            shown.append(group if len(kept) == len(group.candidates) else group._replace(candidates=kept))
    return shown, withheld


def with_withheld(selection: Selection, withheld: Iterable[Candidate]) -> Selection:
    """The selection with why these are not in it."""
    refused = (Decision(candidate, AssemblyReason.QUARANTINED, selection.total_tokens) for candidate in withheld)
    return replace(selection, refused=(*refused, *selection.refused))
