"""The settings of compaction: when to make room, and how much."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.llm.configuration import checked_chain
from compaction.planning.thresholds import contradictions
from conversations.errors import Invalid
from conversations.policy import Policy, conversation_knob, knob


@dataclass(frozen=True)
class CompactionPolicy(Policy):
    enabled: bool = knob(
        True, "Whether LCM compacts at all; messages are stored and found either way.", per_conversation=True
    )
    autocompact_disabled: bool = knob(
        False, "Whether compaction only runs when it is requested.", per_conversation=True
    )
    model_token_budget: int = knob(
        128_000, "The tokens that the agent's model takes.", low=256, high=100_000_000, per_conversation=True
    )
    context_threshold: float = knob(
        0.75,
        "Compaction starts when the context fills this share of the budget.",
        low=0.01,
        high=1.0,
        per_conversation=True,
    )
    hard_threshold: float = conversation_knob(
        0.9,
        "From this share of the budget on everything is compacted, significant or not.",
        low=0.01,
        high=1.0,
    )
    significance_gate: bool = conversation_knob(
        True,
        "Whether automatic compaction skips what is not worth a summary: few turns of substance, few new names, and "
        "little that is not summarized already.",
    )
    compaction_goal: float = conversation_knob(
        0.5,
        "Compaction stops below this share of the budget: making room in batches keeps the prefix of the context, and "
        "a prompt cache, stable in between.",
        low=0.0,
        high=1.0,
    )
    max_active_messages: int = conversation_knob(
        200,
        "Compaction starts when more raw messages than this are in the context.",
        low=1,
        high=1_000_000,
    )
    fresh_tail_count: int = knob(
        8, "The newest raw messages, which are never compacted.", low=1, high=10_000, per_conversation=True
    )
    leaf_chunk_tokens: int = conversation_knob(
        20_000, "The most source tokens of one leaf summary.", low=100, high=10_000_000
    )
    leaf_batch_messages: int = conversation_knob(
        0,
        "The most messages of one leaf summary, unless they are too short to be worth one; 0 for no such limit.",
        low=0,
        high=100_000,
    )
    leaf_target_tokens: int = knob(
        600, "The most tokens of a leaf summary.", low=32, high=100_000, per_conversation=True
    )
    condensed_target_tokens: int = knob(
        900, "The most tokens of a condensed summary.", low=32, high=100_000, per_conversation=True
    )
    condense_fan_in: int = conversation_knob(
        4,
        "How many neighbouring summaries of one depth are merged into one.",
        low=2,
        high=100,
    )
    max_depth: int = conversation_knob(-1, "The deepest summaries to make; -1 for no limit.", low=-1, high=1000)
    summarizer: str = knob(
        "extractive",
        "Which summarizers write the summaries: one of extractive (needs no model), chat and anthropic, or several, "
        "separated by commas, each called when those before it fail.",
        per_conversation=True,
    )
    summary_instructions: str = conversation_knob(
        "",
        "Further instructions for a language model that writes a summary; so many characters.",
        low=0,
        high=2000,
    )
    # The most summaries one run may make.
    max_passes: int = 2000
    # How long one run may take, in seconds.
    run_deadline_seconds: int = 600
    # How long a worker holds a job without renewing its lease, in seconds.
    job_lease_seconds: int = 60

    def require_possible(self) -> None:
        """Raise Invalid for an unknown or unconfigured summarizer, or a contradiction."""
        checked_chain(self.summarizer)
        if found := contradictions(self):
            raise Invalid(" ".join(found), code="cannot_be_satisfied")
