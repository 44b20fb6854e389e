"""Limits of searches, expansions, recalls, grants and map workers."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.policy import Policy, conversation_knob, knob


@dataclass(frozen=True)
class RetrievalPolicy(Policy):
    max_expand_tokens: int = knob(
        4000, "Maximum number of tokens that one expansion returns; a cursor continues it.", low=64, high=10_000_000
    )
    # The most matches one search may ask for.
    max_grep_results: int = 200
    # The most tokens one page of matches takes, so that it floods no context.
    max_grep_tokens: int = 8000
    # The longest full-text query, in characters; a whole question fits easily.
    max_query_length: int = 10_000
    # The longest regular expression, in characters.
    max_pattern_length: int = 500
    search_timeout_ms: int = knob(5000, "Milliseconds after which a search is cancelled.", low=50, high=600_000)
    trigram_index: bool = knob(
        False, "Whether regular expressions use the trigram index that `lcm trigram-index build` makes."
    )
    recall_fresh_messages: int = conversation_knob(
        16,
        "Recall shows this many of the newest summarized messages in leaf summaries, and older messages in the deepest "
        "summaries.",
        low=0,
        high=10_000,
    )
    # The most receipts kept of one conversation; the oldest are deleted, and the answer names them.
    kept_receipts: int = 200
    # The most tokens that may be read to answer one delegated question.
    grant_tokens: int = 16_000
    # How long a grant for such a question lasts, in seconds.
    grant_seconds: int = 300
    # The most model calls for one delegated question.
    query_turns: int = 8
    # The deadline of a delegated question, in seconds.
    query_seconds: int = 60
    # The most tokens of the model's answer.
    query_answer_tokens: int = 1000
    # How long a map worker runs before it yields to other tasks of its queue, in seconds.
    map_slice_seconds: float = 20.0
    # The lease of a claimed map item, in seconds; its worker renews it.
    map_lease_seconds: float = 30.0
    # The most concurrent model calls of one map worker.
    map_calls: int = 16

    @property
    def search_settings(self) -> dict[str, str]:
        """The PostgreSQL settings of the snapshot that a search runs in."""
        return {"statement_timeout": str(self.search_timeout_ms)}
