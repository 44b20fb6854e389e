"""Build the chain of summarizers that a setting names; summarize with a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.utils import timezone

from compaction.llm.client import ModelClient
from compaction.llm.configuration import EXTRACTIVE, ModelsPolicy, chain_of
from compaction.llm.guards import guarded_client
from compaction.llm.types import ContextLength, Misconfigured, Prompt, Reply, Usage
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from compaction.summarizing.output_checks import require_substance, vet
from compaction.summarizing.prompts import MOST_SOURCE_TOKENS, render_prompt
from compaction.summarizing.summarizer import Summarizer, SummaryDraft, SummaryRequest
from conversations.types import Level

# The tokens of a prompt without its source: the task, the previous summary, and the answer's tags.
MOST_PROMPT_TOKENS = 4_000

# The shares of the source that are sent in turn: a smaller one each time the prompt is too long for the model.
SHARES = (1.0, 0.75, 0.5)


def escalation_of(chain: str, *, now: Callable[[], datetime] = timezone.now) -> Escalation:
    """Build the escalation of a chain such as "chat,extractive"; raises Invalid.

    `now` is the clock of the circuit breakers and spend guards.
    """
    policy = ModelsPolicy.from_settings()
    names = chain_of(chain)
    return Escalation(
        chain=tuple(_summarizer(name, policy, now) for name in names),
        last_resort=TelegraphicSummarizer(),
        models=frozenset(names) - {EXTRACTIVE},
    )


def _summarizer(name: str, policy: ModelsPolicy, now: Callable[[], datetime]) -> Summarizer:
    if name == EXTRACTIVE:
        return ExtractiveSummarizer()
    try:
        client = guarded_client(name, policy=policy, now=now)
        temperatures = policy.temperature_by_level()
    except Misconfigured as wrong:
        return Uncallable(name=name, why=wrong)
    room = policy.window_tokens(name) - policy.model_max_output_tokens - MOST_PROMPT_TOKENS
    return LanguageModelSummarizer(
        client=client, most_source_tokens=max(1_000, min(MOST_SOURCE_TOKENS, room)), temperatures=temperatures
    )


@dataclass(frozen=True)
class Uncallable:
    """A misconfigured model in a chain: it raises when it is called, not before.

    So the chain can be built, and its other summarizers work.
    """

    name: str
    why: Misconfigured

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        raise self.why


@dataclass(frozen=True)
class LanguageModelSummarizer:
    """Summarizes by calling one endpoint.

    Raises ModelFailed if there is no answer, and Rejected if the answer is not a summary. The caller decides what
    follows: the next level, another summarizer, or one without a model.
    """

    client: ModelClient
    most_source_tokens: int = MOST_SOURCE_TOKENS
    temperatures: Mapping[Level, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.client.endpoint.name

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        """Return a checked summary, at most as long as the request accepts."""
        prompt, reply, spent = self._call(request)
        text = vet(
            reply.text,
            envelope=prompt.envelope,
            most_tokens=request.acceptable_tokens,
            count_tokens=request.count_tokens,
        )
        require_substance(
            text,
            sources=[source.text for source in request.sources],
            target_tokens=request.target_tokens,
            count_tokens=request.count_tokens,
        )
        return SummaryDraft(
            text=text,
            model=reply.model,
            prompt_hash=prompt.hash,
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
        )

    def _call(self, request: SummaryRequest) -> tuple[Prompt, Reply, Usage]:
        """Call the model with ever shorter prompts; return the last one, reply and usage."""
        spent = Usage()
        for share in SHARES:
            prompt = render_prompt(request, share=share, most_source_tokens=self.most_source_tokens)
            prompt = replace(prompt, temperature=self.temperatures.get(request.level))
            try:
                reply = self.client.complete(prompt, deadline=request.deadline)
            except ContextLength as too_long:
                spent += too_long.usage
                if share == SHARES[-1]:
                    raise
            else:
                return prompt, reply, spent + reply.usage
        raise AssertionError("the last share either answers or raises")
