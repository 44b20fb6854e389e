"""Assemble a conversation's context for a model, within a token budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from compaction.llm.embeddings import EmbedderPolicy
from compaction.policy import CompactionPolicy
from conversations.content.lossless_values import storable
from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid
from conversations.formats import RENDERERS
from conversations.formats.rendered import MessageFormat
from conversations.models import Conversation
from conversations.scope import EVERYTHING, Scope
from conversations.sql import GENERIC_PLANS, snapshot
from conversations.store.injected import MARK_TOKENS
from conversations.store.injected import wrapped as as_injected
from retrieval.assembly.assembled_items import read_items
from retrieval.assembly.context_slots import ContextSlots, StoredContext, read_window, withheld_ids
from retrieval.assembly.past import past_context
from retrieval.assembly.recall import HITS, Shortening, with_recalled
from retrieval.assembly.recall_section import Section, recall_section
from retrieval.assembly.receipts import keep
from retrieval.assembly.selection import left_out, receipt, select
from retrieval.assembly.types import (
    AssembledContext,
    BudgetSource,
    RecallSection,
)
from retrieval.history.session_recall import past_section
from retrieval.history.timelines import project_named
from retrieval.policy import RetrievalPolicy
from retrieval.search.grep import Grep
from retrieval.search.request import FoundRow
from retrieval.semantic import questions
from retrieval.semantic.questions import Question

_OF_TODAY = "The context is as of that moment; budget and fresh tail are the current settings."


@dataclass(frozen=True)
class ContextAssembler:
    """Selects what a model gets of a conversation, and keeps receipts of it."""

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
        """Assemble a context within `budget` tokens (default: its model's budget).

        System messages, the fresh tail (the newest turns) and a pinned question are always included; `over_budget` is
        true if they alone exceed the budget. The rest is filled, newest first.
        With a `query`, matching messages are added before older context, verbatim, even if a summary replaces them
        there. A long message is cut to its best passage if it would crowd out others; a header line gives the position
        and how to read the rest. The fresh tail is cut, too, if it leaves less than a quarter of the budget. The newest
        question and what follows it are never cut. `reserve` tokens of the budget are left for the model's answer.

        `format` renders the context as messages for OpenAI's or Anthropic's API; `repairs` lists the changes that the
        API made necessary. Tokens are counted before rendering. `as_of` returns a past context: at a seq (until the
        next message was recorded), at a time, or at the end of a run. Budget and fresh tail follow the current
        settings, as `note` says. `keep_receipt` stores the receipt; a conversation keeps only its newest
        200.

        Raises NotFound; Invalid for a moment that does not exist, and for a reserve that leaves nothing of the budget.
        """
        with self._snapshot(conversation_id, query) as (conversation, hits, lexemes):
            sought = [int(hit.id) for hit in hits]
            slots: ContextSlots = (
                StoredContext(conversation, sought)
                if as_of is None
                else past_context(conversation, as_of=as_of, sought=sought)
            )
            context = self._assembled(conversation, slots, hits, lexemes, budget=budget, reserve=reserve, query=query)
        conversation.note_use()
        if keep_receipt:
            context = keep(context, last_seq=slots.counters.message_count, most=self.limits.kept_receipts)
        return context if format is None else _in_format(context, MessageFormat(format))

    def prepare(self, query: str | None) -> Question | None:
        """Compute and cache the embedding of a query, before a transaction opens.

        Returns None if no embedder is set up, or if it does not respond.
        """
        if query is None or not EmbedderPolicy.from_settings().embedder_url:
            return None
        return questions.embed_or_none(storable(query[: self.limits.max_query_length]))

    def recall(
        self,
        *,
        conversation_id: int | None = None,
        project: str | None = None,
        query: str | None = None,
        budget: int | None = None,
        share: float = 0.15,
        marked: bool = False,
    ) -> RecallSection:
        """Recall earlier sessions, and what the host cut from this conversation.

        Call this at the start of a session, with its project or its conversation. A host is the agent program that uses
        LCM. The newest earlier sessions of the project are given in detail, older ones as arc and epoch summaries; if
        one does not fit, only its first sentences are given. With a `query`, sessions that match it come first.

        For the conversation itself, summaries of the messages that the host cut follow under the heading
        `## Session History (Compressed)`: leaf summaries of the newest of them, the deepest summaries of the older
        ones. The text takes at most a `share` of the budget, and the conversation's own past has priority. Each summary
        has an id with which to open it; summaries that do not fit are listed by id. A conversation without a project
        gets only its own past; without conversation and project, sessions of all projects are recalled. `marked` wraps
        the text in an element that LCM recognizes: if the host sends it back in a message, it is not stored. Raises
        NotFound.
        """
        count = TokenEstimator.from_settings().count
        own = past = Section()
        query = None if query is None else storable(query[: self.limits.max_query_length])
        question = self.prepare(query)
        with snapshot(settings=self.limits.search_settings):
            conversation = None if conversation_id is None else self.scope.conversation(conversation_id)
            tokens, source = self._budget(conversation, budget)
            most = int(tokens * share)
            limit = max(0, most - MARK_TOKENS) if marked else most
            if conversation is not None:
                withheld = withheld_ids(conversation)
                own = recall_section(
                    conversation.conversation_id,
                    limit=limit,
                    fresh_messages=self.limits.overridden(conversation.overrides).recall_fresh_messages,
                    count=count,
                    withheld=withheld,
                )
            if project is None:
                found = None if conversation is None else conversation.project
            else:
                found = project_named(project, self.scope)
            if found is not None or conversation is None:
                past = past_section(
                    found,
                    scope=self.scope,
                    limit=limit - count(own.text) - 2 * bool(own.text),
                    count=count,
                    query=query,
                    question=question,
                    excluding=conversation_id,
                )
        text = "\n\n".join(filter(None, (past.text, own.text)))
        text = as_injected(text) if marked and text else text
        return RecallSection(
            conversation_id=conversation_id,
            limit=most,
            budget=tokens,
            budget_source=source,
            share=share,
            text=text,
            tokens=count(text),
            summary_ids=own.shown_ids,
            left_out_ids=own.left_out_ids,
            project=None if found is None else found.name,
            past_ids=past.shown_ids,
            past_cut_ids=past.cut_ids,
            past_left_out_ids=past.left_out_ids,
        )

    def _budget(self, conversation: Conversation | None, requested: int | None) -> tuple[int, BudgetSource]:
        """The token budget of a prompt, and where it is set."""
        if requested is not None:
            return requested, BudgetSource.REQUEST
        overrides = {} if conversation is None else conversation.overrides
        source = BudgetSource.CONVERSATION if "model_token_budget" in overrides else BudgetSource.SETTINGS
        return self.policy.overridden(overrides).model_token_budget, source

    @contextmanager
    def _snapshot(
        self, conversation_id: int, query: str | None
    ) -> Iterator[tuple[Conversation, Sequence[FoundRow], Mapping[str, float]]]:
        """Yield the conversation, the hits and the lexemes of a query, in one snapshot."""
        if query is None or not query.strip():
            with snapshot(settings=GENERIC_PLANS):
                yield self.scope.conversation(conversation_id), (), {}
            return
        grep = Grep(policy=self.limits, scope=self.scope)
        with grep.ranked_messages(query=query, conversation_id=conversation_id, limit=HITS) as found:
            yield found

    def _assembled(
        self,
        conversation: Conversation,
        slots: ContextSlots,
        hits: Sequence[FoundRow],
        lexemes: Mapping[str, float],
        *,
        budget: int | None,
        reserve: int,
        query: str | None,
    ) -> AssembledContext:
        tokens, source = self._budget(conversation, budget)
        room = tokens - reserve
        if room < 1:
            raise Invalid(f"reserve: a budget of {tokens} less {reserve} leaves {room} tokens; give a smaller reserve.")
        window = read_window(slots, budget=room, policy=self.policy.overridden(conversation.overrides))
        groups = window.groups
        if hits:
            shortening = Shortening(lexemes, budget=room, count=TokenEstimator.from_settings().count)
            groups = shortening.of(with_recalled(slots, window, hits))
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
    """Render the context as messages of this format; its `items` become empty."""
    return replace(context, items=(), format=wanted, **vars(RENDERERS[wanted](context.items)))
