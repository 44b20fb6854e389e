"""Build the chain of summarizers that a setting names, and the last resort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from compaction.llm.configuration import EXTRACTIVE, ModelsPolicy, chain_of
from compaction.llm.guards import guarded_client
from compaction.llm.withheld_calls import Misconfigured
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from compaction.summarizing.model_summarizer import LanguageModelSummarizer
from compaction.summarizing.prompts import MOST_SOURCE_TOKENS
from compaction.summarizing.summarizer import Summarizer, SummaryDraft, SummaryRequest
from conversations.content.tokens import TokenEstimator

# What a prompt holds beside its source: the task, what is known already, and room for the answer's own tags.
MOST_PROMPT_TOKENS = 4_000


def escalation_of(chain: str, *, tokens: TokenEstimator, now: Callable[[], datetime] = timezone.now) -> Escalation:
    """The escalation of a chain such as "chat,extractive"; Invalid if unknown.

    `now` is the clock of the circuit breakers and spend guards.
    """
    policy = ModelsPolicy.from_settings()
    names = chain_of(chain)
    return Escalation(
        chain=tuple(_summarizer(name, policy, now) for name in names),
        last_resort=TelegraphicSummarizer(),
        count_tokens=tokens.count,
        models=frozenset(names) - {EXTRACTIVE},
    )


def _summarizer(name: str, policy: ModelsPolicy, now: Callable[[], datetime]) -> Summarizer:
    if name == EXTRACTIVE:
        return ExtractiveSummarizer()
    try:
        client = guarded_client(name, policy=policy, now=now)
    except Misconfigured as wrong:
        return Uncallable(name=name, why=wrong)
    room = policy.window_tokens(name) - policy.model_max_output_tokens - MOST_PROMPT_TOKENS
    return LanguageModelSummarizer(client=client, most_source_tokens=max(1_000, min(MOST_SOURCE_TOKENS, room)))


@dataclass(frozen=True)
class Uncallable:
    """A model that cannot be called: it fails at its turn, not before.

    Reading the chain, and the other summarizers in it, work all the same.
    """

    name: str
    why: Misconfigured

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        raise self.why
