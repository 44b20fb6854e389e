"""Gives a model what it should see of a conversation: within a budget, oldest first, and with a receipt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from compaction.policy import CompactionPolicy
from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid
from conversations.formats import RENDERERS
from conversations.formats.rendered import MessageFormat
from conversations.models import Conversation
from conversations.scope import EVERYTHING, Scope
from conversations.sql import snapshot
from conversations.store.last_used import note_use
from retrieval.assembly.candidates import Group
from retrieval.assembly.context_slots import ContextSlots
from retrieval.assembly.kept_receipts import keep, kept, listed
from retrieval.assembly.past import past_context
from retrieval.assembly.recall_section import recall_section
from retrieval.assembly.receipts import difference, left_out, receipt
from retrieval.assembly.selection import select, with_hits, with_withheld, without
from retrieval.assembly.selection_items import read_items
from retrieval.assembly.selection_recall import HITS, in_turn, recall
from retrieval.assembly.selection_window import Window, read_window, totals
from retrieval.assembly.stored_context import stored_context, withheld_ids
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
from retrieval.search.relevance.relevance_search import RankedMatch

_OF_TODAY = "The context is of that moment; the settings it is given by (budget, fresh tail) are today's."
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
        """The context of the conversation within `budget` tokens, or within its model's if none is given.

        System messages, the fresh tail and a pinned question are always in it: if they alone are more, the answer says
        so. Without a query the rest is filled from the newest on; with one, messages that answer it come first, word
        for word even where a summary stands for them. `reserve` tokens of the budget are left for the model's answer.

        In a `format` it comes as the messages that OpenAI's APIs or Anthropic's take, and `repairs` says what had to be
        changed for that; tokens are counted before. `as_of` a seq, a time or a run gives the context as it was then:
        before the next message came, at the time, when the run was through; budget and fresh tail are today's, as the
        answer says. `keep_receipt` keeps the receipt; the newest 200 of a conversation.

        Raises NotFound; Invalid for what cannot be meant.
        """
        _check_tokens("budget", budget, least=1)
        _check_tokens("reserve", reserve, least=0)
        wanted = _format(format)
        with self._at_hand(conversation_id, query) as (conversation, hits):
            sought = in_turn(hits, last_seq=conversation.counters.message_count)
            slots: ContextSlots = (
                stored_context(conversation, sought=sought)
                if as_of is None
                else past_context(conversation, as_of=as_of, sought=sought)
            )
            context = self._assembled(
                conversation,
                slots,
                budget=budget,
                reserve=reserve,
                query=query,
                hits=hits,
            )
        note_use(conversation)
        if keep_receipt:
            context = keep(context, last_seq=slots.counters.message_count, most=self.limits.kept_receipts)
        return context if wanted is None else _in_format(context, wanted)

    def list_receipts(
        self, *, conversation_id: int, before_receipt: str | None = None, limit: int = 20
    ) -> list[ReceiptOutline]:
        """List the kept receipts of a conversation, newest first; NotFound if there is no such conversation."""
        return listed(self.scope.conversation(conversation_id).pk, before_receipt=before_receipt, limit=limit)

    def get_receipt(self, *, receipt_id: str) -> KeptReceipt:
        """A receipt that was kept: what was in the context and what was not, and why; NotFound if there is none."""
        return kept(receipt_id, scope=self.scope)

    def compare_receipts(self, *, receipt_id: str, other: str) -> ReceiptDifference:
        """What came into the context and what went out from one receipt to the other, and what changed its cost.

        Raises NotFound; Invalid for receipts of two conversations.
        """
        before, after = self.get_receipt(receipt_id=receipt_id), self.get_receipt(receipt_id=other)
        if before.conversation_id != after.conversation_id:
            raise Invalid(
                f"other: {other} is of conversation {after.conversation_id}, {receipt_id} of {before.conversation_id}."
            )
        return difference(before, after)

    def recall(self, *, conversation_id: int, budget: int | None = None, share: float = 0.15) -> RecallSection:
        """The section `## Session History (Compressed)` for a host that compacts by itself, in a share of its budget.

        The newest summarized messages are told in leaf summaries, all before them in the deepest there are; each has
        its id, so that it can be opened. The newest go in first; what had no room is named. Raises NotFound; Invalid
        for a budget or a share that cannot be meant.
        """
        _check_tokens("budget", budget, least=1)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise Invalid(f"share: {str(share)[:80]} is not a share of the budget, above 0 and up to 1.")
        with snapshot():
            conversation = self.scope.conversation(conversation_id)
            tokens, source = _budget(conversation, self.policy.overridden(conversation.overrides), budget)
            limit = int(tokens * share)
            section = recall_section(
                conversation_id,
                limit=limit,
                count=TokenEstimator.from_settings().count,
                withheld=withheld_ids(conversation),
            )
        return RecallSection(
            conversation_id=conversation_id,
            text=section.text,
            tokens=section.tokens,
            limit=limit,
            budget=tokens,
            budget_source=source,
            share=share,
            summary_ids=tuple(node.summary_id for node in section.shown),
            left_out_ids=tuple(node.summary_id for node in section.left_out),
        )

    @contextmanager
    def _at_hand(self, conversation_id: int, query: str | None) -> Iterator[tuple[Conversation, Sequence[RankedMatch]]]:
        """Yield the conversation and what answers the query, in one snapshot with all that is read within."""
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
        *,
        budget: int | None,
        reserve: int,
        query: str | None,
        hits: Sequence[RankedMatch],
    ) -> AssembledContext:
        policy = self.policy.overridden(conversation.overrides)
        tokens, source = _budget(conversation, policy, budget)
        room = tokens - reserve
        if room < 1:
            raise Invalid(f"reserve: {tokens} tokens of budget less {reserve} of reserve leave {room} for the context.")
        window = read_window(slots, budget=room, policy=policy)
        groups = _with_recalled(slots, window, hits) if hits else window.groups
        shown, withheld = without(groups, window.newest.withheld) if window.newest.withheld else (groups, ())
        selection = with_withheld(select(shown, budget=room), withheld)
        missing = left_out(selection, totals(slots, window))
        items = read_items(
            selection.included,
            some_are_cold=bool(conversation.cold_messages),
        )
        return AssembledContext(
            conversation_id=conversation.conversation_id,
            budget=tokens,
            budget_source=source,
            total_tokens=selection.total_tokens,
            over_budget=selection.over_budget,
            items=items,
            left_out=missing,
            receipt=receipt(selection, missing, begins=window.begins, edge=window.edge),
            query=query,
            reserve=reserve,
            as_of=slots.moment,
            note=None if slots.moment is None else _OF_TODAY,
        )


def _with_recalled(slots: ContextSlots, window: Window, hits: Sequence[RankedMatch]) -> list[Group]:
    """The groups with those that the query adds: its hits, and the summaries that stand for them."""
    last_seq = slots.counters.message_count
    known = [candidate for group in window.groups for candidate in group.candidates]
    found = recall(
        slots,
        window.newest,
        hits=[hit for hit in hits if hit.seq <= last_seq],
        known={candidate.message_id for candidate in known if candidate.message_id is not None},
    )
    near = {candidate.summary_id for candidate in known}
    farther = {summary.id: summary for summary in found.summaries if summary.id not in near}
    everything = [*window.groups, *(Group((summary,)) for summary in farther.values()), *found.groups]
    return with_hits(everything, found.scores, found.stands_for)


def _in_format(context: AssembledContext, wanted: MessageFormat) -> AssembledContext:
    """The context as messages; nothing is said twice, so its items are gone."""
    rendered = RENDERERS[wanted](context.items)
    return replace(
        context,
        items=(),
        format=wanted,
        system=rendered.system,
        messages=rendered.messages,
        sources=rendered.sources,
        repairs=rendered.repairs,
    )


def _budget(conversation: Conversation, policy: CompactionPolicy, asked: int | None) -> tuple[int, BudgetSource]:
    if asked is not None:
        return asked, BudgetSource.REQUEST
    own = "model_token_budget" in conversation.overrides
    return policy.model_token_budget, BudgetSource.CONVERSATION if own else BudgetSource.SETTINGS


def _check_tokens(name: str, tokens: Any, *, least: int) -> None:
    if tokens is None and name == "budget":
        return
    if isinstance(tokens, bool) or not isinstance(tokens, int) or not least <= tokens <= MOST_TOKENS:
        raise Invalid(f"{name}: {str(tokens)[:80]!r} is not a whole number of tokens from {least} to {MOST_TOKENS}.")


def _format(asked: Any) -> MessageFormat | None:
    try:
        return None if asked is None else MessageFormat(asked)
    except ValueError:
        raise Invalid(f"format: {str(asked)[:80]!r} is none of {', '.join(MessageFormat)}.") from None
