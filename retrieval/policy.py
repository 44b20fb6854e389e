"""How much one reading may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.policy import Policy, conversation_knob, knob


@dataclass(frozen=True)
class RetrievalPolicy(Policy):
    max_expand_tokens: int = knob(
        4000, "The most tokens one expansion returns; a cursor continues it.", low=64, high=10_000_000
    )
    # The most matches one search may ask for.
    max_grep_results: int = 200
    # The most tokens one page of matches takes, so that it floods no context.
    max_grep_tokens: int = 8000
    # The longest full-text query, in characters; a whole question fits easily.
    max_query_length: int = 10_000
    # The longest regular expression, in characters.
    max_pattern_length: int = 500
    search_timeout_ms: int = knob(
        5000, "How long one search may take before it is called off, in milliseconds.", low=50, high=600_000
    )
    trigram_index: bool = knob(
        False, "Whether regular expressions use the index of trigrams that `lcm trigram-index build` makes."
    )
    recall_fresh_messages: int = conversation_knob(
        16,
        "The newest summarized messages, which recall shows in leaf summaries; those before them are in the deepest.",
        low=0,
        high=10_000,
    )
    # The most receipts kept of one conversation; the oldest make way, and the answer names them.
    kept_receipts: int = 200
    # The most tokens that may be read to answer one delegated question.
    grant_tokens: int = 16_000
    # How long such leave to read lasts, in seconds.
    grant_seconds: int = 300
    # How often a language model that answers such a question may look something up.
    query_turns: int = 8
    # How long it may take over the answer, in seconds.
    query_seconds: int = 60
    # The most tokens of its answer.
    query_answer_tokens: int = 1000
    # How long a worker of map runs goes on before other tasks of its queue have their turn, in seconds.
    map_slice_seconds: float = 20.0
    # How long an item stays with a worker that no longer renews its lease, in seconds.
    map_lease_seconds: float = 30.0
    # The most calls of models by one worker of map runs at once.
    map_calls: int = 16

    @property
    def search_settings(self) -> dict[str, str]:
        """The server's settings for a snapshot in which is searched."""
        return {"statement_timeout": str(self.search_timeout_ms)}
