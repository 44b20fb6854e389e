"""Gives a model what it should see of a conversation: within a budget, oldest first, and with a receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from compaction.policy import CompactionPolicy
from conversations.errors import Invalid
from conversations.models import Conversation
from conversations.reading import snapshot
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from retrieval.assembly_types import AssembledContext, BudgetSource
from retrieval.full_text import Found
from retrieval.grep import Grep
from retrieval.policy import RetrievalPolicy
from retrieval.receipts import left_out, receipt
from retrieval.selection import Group, select, with_hits
from retrieval.selection_items import read_items
from retrieval.selection_recall import HITS, recall
from retrieval.selection_window import read_summaries, read_totals, read_window

MOST_TOKENS = next(each for each in fields(CompactionPolicy) if each.name == "model_token_budget").metadata["high"]


@dataclass(frozen=True)
class ContextAssembler:
    """Chooses what a model gets to see of a conversation."""

    policy: CompactionPolicy
    limits: RetrievalPolicy
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> ContextAssembler:
        return cls(policy=CompactionPolicy.from_settings(), limits=RetrievalPolicy.from_settings(), scope=scope)

    def assemble(
        self, *, conversation_id: int, budget: int | None = None, query: str | None = None
    ) -> AssembledContext:
        """The context of the conversation within `budget` tokens, or within its model's if none is given.

        System messages, the fresh tail and a pinned question are always in it: if they alone are more, the answer says
        so. Without a query the rest is filled from the newest on; with one, messages that answer it come first, word
        for word even where a summary stands for them. Raises NotFound; Invalid for a budget that cannot be meant.
        """
        if budget is not None:
            _check_budget(budget)
        hits = self._hits(conversation_id, query)
        with snapshot():
            conversation = self.scope.conversation(conversation_id)
            return self._assembled(conversation, budget=budget, query=query, hits=hits)

    def _hits(self, conversation_id: int, query: str | None) -> Sequence[Found]:
        """What answers the query, looked up before the snapshot is taken: nothing that it finds can go away."""
        if query is None or not query.strip():
            return ()
        grep = Grep(policy=self.limits, scope=self.scope)
        return grep.ranked_messages(query=query, conversation_id=conversation_id, limit=HITS)

    def _assembled(
        self, conversation: Conversation, *, budget: int | None, query: str | None, hits: Sequence[Found]
    ) -> AssembledContext:
        policy = self.policy.overridden(conversation.overrides)
        tokens, source = _budget(conversation, policy, budget)
        window = read_window(
            conversation_id=conversation.conversation_id, counters=conversation.counters, budget=tokens, policy=policy
        )
        groups = _with_recalled(conversation, window.groups, hits) if hits else window.groups
        selection = select(groups, budget=tokens)
        missing = left_out(selection, read_totals(conversation=conversation.as_record(), window=window))
        return AssembledContext(
            conversation_id=conversation.conversation_id,
            budget=tokens,
            budget_source=source,
            total_tokens=selection.total_tokens,
            over_budget=selection.over_budget,
            items=read_items(selection.included),
            left_out=missing,
            receipt=receipt(selection, missing, begins=window.begins, edge=window.edge),
            query=query,
        )


def _with_recalled(conversation: Conversation, groups: Sequence[Group], hits: Sequence[Found]) -> list[Group]:
    """The groups with those that the query adds: its hits, and the summaries that stand for them."""
    known = [candidate for group in groups for candidate in group.candidates]
    found = recall(
        conversation_id=conversation.conversation_id,
        last_seq=conversation.next_seq - 1,
        hits=hits,
        known={candidate.message_id for candidate in known if candidate.message_id is not None},
    )
    farther = read_summaries(found.stands_for.keys() - {candidate.summary_id for candidate in known})
    everything = [*groups, *(Group((summary,)) for summary in farther), *found.groups]
    return with_hits(everything, found.scores, found.stands_for)


def _budget(conversation: Conversation, policy: CompactionPolicy, asked: int | None) -> tuple[int, BudgetSource]:
    if asked is not None:
        return asked, BudgetSource.REQUEST
    own = "model_token_budget" in conversation.overrides
    return policy.model_token_budget, BudgetSource.CONVERSATION if own else BudgetSource.SETTINGS


def _check_budget(budget: Any) -> None:
    if isinstance(budget, bool) or not isinstance(budget, int) or not 1 <= budget <= MOST_TOKENS:
        raise Invalid(f"budget: {str(budget)[:80]!r} is not a whole number of tokens from 1 to {MOST_TOKENS}.")
