"""The summarizer with a language model, whose answers are checked."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.llm.client import ModelClient
from compaction.llm.types import ContextLength, Prompt, Reply, Usage
from compaction.summarizing.output_checks import require_substance, vet
from compaction.summarizing.prompts import MOST_SOURCE_TOKENS, render_prompt
from compaction.summarizing.summarizer import SummaryDraft, SummaryRequest

# How much of its source a prompt holds: when the model says that it is too long, less, twice.
SHARES = (1.0, 0.75, 0.5)

# What a request that sets no bound of its own would accept.
_OVERSHOOT = 3


@dataclass(frozen=True)
class LanguageModelSummarizer:
    """Calls one endpoint; ModelFailed without an answer, Rejected without a summary.

    The caller decides what follows: a harder level, another summarizer, or none with a model.
    """

    client: ModelClient
    most_source_tokens: int = MOST_SOURCE_TOKENS

    @property
    def name(self) -> str:
        return self.client.endpoint.name

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        """A checked summary in at most the tokens that the request accepts."""
        prompt, reply, spent = self._call(request)
        text = vet(
            reply.text,
            envelope=prompt.envelope,
            most_tokens=request.most_tokens or _OVERSHOOT * request.target_tokens,
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
        """The last prompt, its reply, and the cost of all calls."""
        spent = Usage()
        for share in SHARES:
            prompt = render_prompt(request, share=share, most_source_tokens=self.most_source_tokens)
            try:
                reply = self.client.complete(prompt, deadline=request.deadline)
            except ContextLength as too_long:
                spent += too_long.usage
                if share == SHARES[-1]:
                    raise
            else:
                return prompt, reply, spent + reply.usage
        raise AssertionError("the last share either answers or raises")
