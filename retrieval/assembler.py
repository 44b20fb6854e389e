"""Assemble what a model sees of a conversation, within a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from compaction.policy import CompactionPolicy
from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid
from conversations.formats import RENDERERS
from conversations.formats.rendered import MessageFormat
from conversations.models import Conversation
from conversations.scope import EVERYTHING, Scope
from conversations.sql import snapshot
from retrieval.assembly.assembled_items import read_items
from retrieval.assembly.context_slots import ContextSlots, StoredContext, read_window, withheld_ids
from retrieval.assembly.past import past_context
from retrieval.assembly.recall import HITS, with_recalled
from retrieval.assembly.recall_section import recall_section
from retrieval.assembly.receipts import difference, keep, kept, listed
from retrieval.assembly.selection import left_out, receipt, select
from retrieval.assembly.types import (
    AssembledContext,
    BudgetSource,
    KeptReceipt,
    RecallSection,
    ReceiptDifference,
    ReceiptOutline,
)
from retrieval.policy import RetrievalPolicy
from retrieval.search.grep import Grep
from retrieval.search.page import FoundRow

_OF_TODAY = "The context is of that moment; the settings it is given by (budget, fresh tail) are today's."


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
        self,
        *,
        conversation_id: int,
        budget: int | None = None,
        query: str | None = None,
        format: MessageFormat | str | None = None,
        reserve: int = 0,
        as_of: int | str | datetime | None = None,
        keep_receipt: bool = False,
    ) -> AssembledContext:
        """Assemble a context within `budget` tokens, or within its model's budget.

        System messages, the fresh tail and a pinned question are always in it: if they alone are more, the answer says
        so. Without a query the rest is filled from the newest on; with one, messages that answer it come first, word
        for word even where a summary stands for them. `reserve` tokens of the budget are left for the model's answer.

        In a `format` it comes as the messages that OpenAI's APIs or Anthropic's take, and `repairs` says what had to be
        changed for that; tokens are counted before. `as_of` a seq, a time or a run gives the context as it was then:
        before the next message came, at the time, when the run was through; budget and fresh tail are today's, as the
        answer says. `keep_receipt` keeps the receipt; the newest 200 of a conversation.

        Raises NotFound; Invalid for a moment that there is not, and for a reserve that leaves nothing of the budget.
        """
        with self._snapshot(conversation_id, query) as (conversation, hits):
            sought = [int(hit.id) for hit in hits]
            slots: ContextSlots = (
                StoredContext(conversation, sought)
                if as_of is None
                else past_context(conversation, as_of=as_of, sought=sought)
            )
            context = self._assembled(conversation, slots, hits, budget=budget, reserve=reserve, query=query)
        conversation.note_use()
        if keep_receipt:
            context = keep(context, last_seq=slots.counters.message_count, most=self.limits.kept_receipts)
        return context if format is None else _in_format(context, MessageFormat(format))

    def list_receipts(
        self, *, conversation_id: int, before_receipt: str | None = None, limit: int = 20
    ) -> list[ReceiptOutline]:
        """List the kept receipts of a conversation, newest first; or NotFound."""
        return listed(self.scope.conversation(conversation_id).pk, before_receipt=before_receipt, limit=limit)

    def get_receipt(self, *, receipt_id: str) -> KeptReceipt:
        """Get a kept receipt: what was in the context, what was not, and why."""
        return kept(receipt_id, scope=self.scope)

    def compare_receipts(self, *, receipt_id: str, other: str) -> ReceiptDifference:
        """Compare two receipts: what came in, what went out, what changed its cost.

        Raises NotFound; Invalid for receipts of two conversations.
        """
        before, after = self.get_receipt(receipt_id=receipt_id), self.get_receipt(receipt_id=other)
        if before.conversation_id != after.conversation_id:
            raise Invalid(
                f"other: {other} is of conversation {after.conversation_id}, {receipt_id} of {before.conversation_id}."
            )
        return difference(before, after)

    def recall(self, *, conversation_id: int, budget: int | None = None, share: float = 0.15) -> RecallSection:
        """Write the history section for a host that compacts by itself.

        It is headed `## Session History (Compressed)` and takes a share of the budget. The newest summarized messages
        are in leaf summaries, all before them in the deepest there are; each has its id, so that it can be opened. The
        newest go in first; what had no room is named. Raises NotFound.
        """
        with snapshot():
            conversation = self.scope.conversation(conversation_id)
            tokens, source = _budget(conversation, self.policy.overridden(conversation.overrides), budget)
            limit = int(tokens * share)
            section = recall_section(
                conversation_id,
                limit=limit,
                fresh_messages=self.limits.overridden(conversation.overrides).recall_fresh_messages,
                count=TokenEstimator.from_settings().count,
                withheld=withheld_ids(conversation),
            )
        return RecallSection(
            conversation_id=conversation_id,
            limit=limit,
            budget=tokens,
            budget_source=source,
            share=share,
            **section._asdict(),
        )

    @contextmanager
    def _snapshot(self, conversation_id: int, query: str | None) -> Iterator[tuple[Conversation, Sequence[FoundRow]]]:
        """Yield the conversation and the hits of the query, in one snapshot."""
        if query is None or not query.strip():
            with snapshot(generic_plans=True):
                yield self.scope.conversation(conversation_id), ()
            return
        grep = Grep(policy=self.limits, scope=self.scope)
        with grep.ranked_messages(query=query, conversation_id=conversation_id, limit=HITS) as found:
            yield found

    def _assembled(
        self,
        conversation: Conversation,
        slots: ContextSlots,
        hits: Sequence[FoundRow],
        *,
        budget: int | None,
        reserve: int,
        query: str | None,
    ) -> AssembledContext:
        policy = self.policy.overridden(conversation.overrides)
        tokens, source = _budget(conversation, policy, budget)
        room = tokens - reserve
        if room < 1:
            raise Invalid(f"reserve: {tokens} tokens of budget less {reserve} of reserve leave {room} for the context.")
        window = read_window(slots, budget=room, policy=policy)
        groups = with_recalled(slots, window, hits) if hits else window.groups
        selection = select(groups, budget=room, withheld=window.newest.withheld)
        missing = left_out(selection, window.totals(slots.counters))
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
            reserve=reserve,
            as_of=slots.moment,
            note=None if slots.moment is None else _OF_TODAY,
        )


def _in_format(context: AssembledContext, wanted: MessageFormat) -> AssembledContext:
    """The context as messages, without the items that they repeat."""
    return replace(context, items=(), format=wanted, **vars(RENDERERS[wanted](context.items)))


def _budget(conversation: Conversation, policy: CompactionPolicy, requested: int | None) -> tuple[int, BudgetSource]:
    if requested is not None:
        return requested, BudgetSource.REQUEST
    own = "model_token_budget" in conversation.overrides
    return policy.model_token_budget, BudgetSource.CONVERSATION if own else BudgetSource.SETTINGS
