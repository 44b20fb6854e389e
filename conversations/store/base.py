from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS as MESSAGE_OVERHEAD_TOKENS
from conversations.content.tokens import TokenEstimator
from conversations.policy import StorePolicy
from conversations.scope import EVERYTHING as EVERYTHING
from conversations.scope import Scope


@dataclass(frozen=True)
class Store:
    """What every part of the store works with."""

    tokens: TokenEstimator
    policy: StorePolicy
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        policy = StorePolicy.from_settings()
        return cls(tokens=TokenEstimator(encoding=policy.encoding), policy=policy, scope=scope)
