"""How much one reading may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.policy import Policy, knob


@dataclass(frozen=True)
class RetrievalPolicy(Policy):
    max_expand_tokens: int = knob(
        4000, "The most tokens one expansion returns; a cursor continues it.", low=64, high=10_000_000
    )
    max_grep_results: int = knob(200, "The most matches one search may ask for.", low=1, high=10_000)
    max_grep_tokens: int = knob(
        8000, "The most tokens one page of matches takes, so that it floods no context.", low=200, high=10_000_000
    )
    max_query_length: int = knob(
        10_000, "The longest full-text query, in characters; a whole question fits easily.", low=100, high=100_000
    )
    max_pattern_length: int = knob(500, "The longest regular expression, in characters.", low=10, high=10_000)
    search_timeout_ms: int = knob(
        5000, "How long one search may take before it is called off, in milliseconds.", low=50, high=600_000
    )
    trigram_index: bool = knob(
        False, "Whether regular expressions use the index of trigrams that `lcm trigram-index build` makes."
    )
    kept_receipts: int = knob(
        200,
        "The most receipts kept of one conversation; the oldest make way, and the answer names them.",
        low=1,
        high=100_000,
    )
    grant_tokens: int = knob(
        16_000, "The most tokens that may be read to answer one delegated question.", low=256, high=10_000_000
    )
    grant_seconds: int = knob(300, "How long such leave to read lasts, in seconds.", low=1, high=86_400)
    query_turns: int = knob(
        8, "How often a language model that answers such a question may look something up.", low=1, high=100
    )
    query_seconds: int = knob(60, "How long it may take over the answer, in seconds.", low=1, high=3600)
    query_answer_tokens: int = knob(1000, "The most tokens of its answer.", low=64, high=100_000)
