"""The four ways to read what was kept: find it, understand it, open it again, see how it hangs together."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from conversations.tokens import TokenEstimator
from retrieval.describe import describe
from retrieval.expand import Expansion
from retrieval.grep import Grep
from retrieval.lineage import lineage
from retrieval.policy import RetrievalPolicy
from retrieval.types import Description, ExpandResult, GrepMode, GrepResult, GrepScope, Lineage


@dataclass(frozen=True)
class RetrievalEngine:
    """Reads for one workspace or, for workers and the operator, for all."""

    policy: RetrievalPolicy
    tokens: TokenEstimator
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> RetrievalEngine:
        return cls(policy=RetrievalPolicy.from_settings(), tokens=TokenEstimator.from_settings(), scope=scope)

    def grep(
        self,
        *,
        query: str,
        mode: GrepMode | str = GrepMode.FULL_TEXT,
        scope: GrepScope | str = GrepScope.BOTH,
        conversation_id: int | None = None,
        limit: int = 20,
    ) -> GrepResult:
        """Messages and summaries that hold what is asked for, in one conversation or in all of the workspace.

        Full text takes words, "phrases", `or` and -exclusions, best match first; if too few texts hold every word,
        those with any of them are given, and the answer says so. A regular expression finds the newest first. Raises
        Invalid for a query that cannot be searched for, NotFound for the conversation; `search_timeout` if it takes
        too long.
        """
        return Grep(policy=self.policy, scope=self.scope).run(
            query=query, mode=mode, scope=scope, conversation_id=conversation_id, limit=limit
        )

    def describe(self, *, id: str) -> Description:
        """What a summary, a file or a message is, and how it hangs together with the rest.

        The id may stand inside a text, such as the element of a summary. Raises NotFound alike for what is not there
        and what the caller may not see.
        """
        return describe(id, scope=self.scope)

    def expand(
        self,
        *,
        summary_id: str,
        depth: int = 1,
        include_messages: bool = False,
        token_cap: int | None = None,
        cursor: str | None = None,
    ) -> ExpandResult:
        """A page of what a summary was made from, in the order of the conversation, within `token_cap` tokens.

        `depth` levels are opened, all of them with -1. The cursor of an answer continues exactly where it stopped, so
        that every byte can be had. Raises NotFound; Invalid, with `bad_cursor` for a cursor of another expansion.
        """
        return Expansion(policy=self.policy, tokens=self.tokens, scope=self.scope).page(
            summary_id=summary_id, depth=depth, include_messages=include_messages, token_cap=token_cap, cursor=cursor
        )

    def lineage(self, *, conversation_id: int) -> Lineage:
        """Every summary of a conversation and what it was made from; NotFound if there is no such conversation."""
        return lineage(conversation_id, scope=self.scope)
