"""The ways to read what is not in the context: find it, understand it, open it, and see how it hangs together."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from conversations.tokens import TokenEstimator
from retrieval.describe import Describer
from retrieval.expand import Expander
from retrieval.lineage import lineage_of
from retrieval.policy import RetrievalPolicy
from retrieval.types import Description, ExpandResult, Lineage


@dataclass(frozen=True)
class RetrievalEngine:
    """grep, describe, expand and lineage, in one workspace or in all."""

    policy: RetrievalPolicy
    tokens: TokenEstimator
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> RetrievalEngine:
        return cls(policy=RetrievalPolicy.from_settings(), tokens=TokenEstimator.from_settings(), scope=scope)

    def describe(self, *, id: str) -> Description:
        """What a summary's, a message's or a file's id names, its lineage in both directions, and what opening it costs.

        NotFound if there is none that you may see; Invalid for what is no id.
        """
        return Describer(scope=self.scope).describe(id=id)

    def expand(
        self,
        *,
        summary_id: str,
        depth: int = 1,
        include_messages: bool = False,
        token_cap: int | None = None,
        cursor: str | None = None,
    ) -> ExpandResult:
        """What a summary was made from: one layer, or `depth` of them (-1 for all), with messages if asked for.

        A page costs at most `token_cap` tokens, or the setting LCM_MAX_EXPAND_TOKENS if that is less, but shows one item
        or a slice of one in any case. The cursor goes on exactly where the page stopped.
        """
        expander = Expander(policy=self.policy, tokens=self.tokens, scope=self.scope)
        return expander.expand(
            summary_id=summary_id,
            depth=depth,
            include_messages=include_messages,
            token_cap=token_cap,
            cursor=cursor,
        )

    def lineage(self, *, conversation_id: int) -> Lineage:
        """The summaries of a conversation and what each was made from, as nodes and edges."""
        return lineage_of(self.scope, conversation_id)
