"""The summarizer with a language model behind it: asks in words, and believes nothing of what comes back unseen."""

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
    """Asks one endpoint. Raises ModelFailed where there is no answer, and Rejected where there is one, but no summary.

    Either is for the caller to act on: to press harder, to ask somebody else, or to do without a model.
    """

    client: ModelClient
    most_source_tokens: int = MOST_SOURCE_TOKENS

    @property
    def name(self) -> str:
        return self.client.endpoint.name

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        """A text that was written as a summary of the sources, in at most the tokens that the request accepts."""
        prompt, reply, spent = self._asked(request)
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

    def _asked(self, request: SummaryRequest) -> tuple[Prompt, Reply, Usage]:
        """What was asked in the end, what was answered, and what it cost in all."""
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
