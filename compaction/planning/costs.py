"""What a summary costs in a context."""

from __future__ import annotations

from collections.abc import Callable

from compaction.rendering import render_dearest
from conversations.content.tokens import TokenEstimator
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.types import NewSummary


def context_cost_of(tokens: TokenEstimator) -> Callable[[NewSummary], int]:
    """Counts, for one summary after the other, the element that a model sees of it, and the framing of a message."""

    def cost_of(summary: NewSummary) -> int:
        return tokens.count(render_dearest(summary)) + MESSAGE_OVERHEAD_TOKENS

    return cost_of
