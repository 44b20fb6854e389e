"""The base of all services that read."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.content.tokens import TokenEstimator
from conversations.scope import EVERYTHING, Scope
from retrieval.policy import RetrievalPolicy


@dataclass(frozen=True)
class Reader:
    """Limits, a counter of tokens, and the workspace to read (default: all)."""

    policy: RetrievalPolicy
    tokens: TokenEstimator
    scope: Scope = EVERYTHING
