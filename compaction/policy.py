"""The settings of compaction: thresholds, targets and contradictions. Pure.

Contradictions are settings that are valid one by one but cannot be satisfied together. Only what can never work is
refused: a target that is long for its chunk is cut to a share of it, and a goal above the threshold counts as just
below it, so neither is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from compaction.llm.configuration import require_configured_chain
from compaction.types import CompactionDecision, Trigger
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.errors import Invalid
from conversations.policy import Policy, conversation_knob, knob
from conversations.types import Counters

# What a summary costs beyond its own text: the element that a model sees around it, with id, range and times.
SHELL_TOKENS = 100
# A summary must cost at most this share of what it replaces, or the source is better left as it is.
WORTHWHILE = 0.7
# How much of a source its summary may keep when the target would allow more.
LEAF_SHARE = 0.35
CONDENSED_SHARE = 0.5
# What the shortest raw message costs: its framing and one token.
LEAST_MESSAGE_TOKENS = MESSAGE_OVERHEAD_TOKENS + 1


@dataclass(frozen=True)
class CompactionPolicy(Policy):
    enabled: bool = knob(
        True, "Whether LCM compacts at all. Messages are stored and searchable either way.", per_conversation=True
    )
    autocompact_disabled: bool = knob(
        False, "Whether compaction only runs when it is requested.", per_conversation=True
    )
    model_token_budget: int = knob(
        128_000,
        "The token budget of a context: how many tokens the agent's model accepts.",
        low=256,
        high=100_000_000,
        per_conversation=True,
    )
    context_threshold: float = knob(
        0.75,
        "Compaction starts when the context fills this share of the budget.",
        low=0.01,
        high=1.0,
        per_conversation=True,
    )
    hard_threshold: float = conversation_knob(
        0.9, "If the context fills this share of the budget, compaction is never skipped.", low=0.01, high=1.0
    )
    significance_gate: bool = conversation_knob(
        True,
        "Whether automatic compaction is skipped if the messages are not worth a summary: few substantive turns, few "
        "new names, and few words that no summary contains. The next settings define few.",
    )
    significant_turns: int = conversation_knob(
        5, "With this many substantive turns, compaction is not skipped; 0 to never skip it.", low=0, high=10_000
    )
    significant_names: int = conversation_knob(
        3, "With this many new names and identifiers, compaction is not skipped.", low=0, high=10_000
    )
    significant_novelty: float = conversation_knob(
        0.1, "If this share of the words is in no summary yet, compaction is not skipped.", low=0.0, high=1.0
    )
    substantive_words: int = conversation_knob(
        6,
        "A turn is substantive if it has at least this many distinct words that no earlier turn has. Function words "
        "and small talk do not count.",
        low=1,
        high=1000,
    )
    compaction_goal: float = conversation_knob(
        0.5,
        "Compaction continues down to this share of the budget. Fewer, larger compactions keep the beginning of the "
        "context stable, so that prompt caches work longer.",
        low=0.0,
        high=1.0,
    )
    max_active_messages: int = conversation_knob(
        200, "Compaction starts when more messages than this are not summarized.", low=1, high=1_000_000
    )
    fresh_tail_count: int = knob(
        8, "The number of newest messages, which are never compacted.", low=1, high=10_000, per_conversation=True
    )
    leaf_chunk_tokens: int = conversation_knob(
        20_000, "Maximum number of source tokens of one leaf summary.", low=100, high=10_000_000
    )
    leaf_batch_messages: int = conversation_knob(
        0,
        "Maximum number of messages of one leaf summary, unless they are too short to be worth one; 0 for no limit.",
        low=0,
        high=100_000,
    )
    leaf_target_tokens: int = knob(
        600, "The target length of a leaf summary, in tokens.", low=32, high=100_000, per_conversation=True
    )
    condensed_target_tokens: int = knob(
        900, "The target length of a condensed summary, in tokens.", low=32, high=100_000, per_conversation=True
    )
    target_factor: float = conversation_knob(
        1.5,
        "A text is accepted as a summary up to this multiple of its target length. After a longer text, the next "
        "escalation level is tried.",
        low=1.0,
        high=10.0,
    )
    condense_fan_in: int = conversation_knob(
        4, "The number of neighbouring summaries of one depth that are merged into one.", low=2, high=100
    )
    max_depth: int = conversation_knob(-1, "Maximum depth of a summary; -1 for no limit.", low=-1, high=1000)
    summarizer: str = knob(
        "extractive",
        "The summarizers that write summaries: extractive (needs no model), chat or anthropic, or several of them, "
        "separated by commas. Each is called if those before it fail.",
        per_conversation=True,
    )
    summary_instructions: str = conversation_knob(
        "", "Further instructions for language models that write summaries, as a text.", low=0, high=2000
    )
    # The most summaries one run may make.
    max_passes: int = 2000
    # How long one run may take, in seconds.
    run_deadline_seconds: int = 600
    # How long a worker holds a job without renewing its lease, in seconds.
    job_lease_seconds: int = 60

    @property
    def threshold_tokens(self) -> int:
        """The active tokens from which on compaction is needed."""
        return max(1, int(self.context_threshold * self.model_token_budget))

    @property
    def hard_tokens(self) -> int:
        """The active tokens from which on the significance gate skips nothing."""
        return max(self.threshold_tokens, int(self.hard_threshold * self.model_token_budget))

    def trigger_of(self, counters: Counters) -> Trigger | None:
        """Return what puts the conversation under pressure, or None."""
        if counters.active_tokens >= self.threshold_tokens:
            return Trigger.TOKENS
        return Trigger.MESSAGES if counters.active_messages > self.max_active_messages else None

    def decide(self, conversation_id: int, counters: Counters) -> CompactionDecision:
        """Compare a conversation's counters with its thresholds, without a query."""
        trigger = self.trigger_of(counters)
        return CompactionDecision(
            conversation_id=conversation_id,
            should_compact=self.enabled and trigger is not None,
            trigger=trigger,
            active_tokens=counters.active_tokens,
            threshold_tokens=self.threshold_tokens,
            hard_tokens=self.hard_tokens,
            is_hard=counters.active_tokens >= self.hard_tokens,
            model_token_budget=self.model_token_budget,
            active_messages=counters.active_messages,
            max_active_messages=self.max_active_messages,
            enabled=self.enabled,
            autocompact_disabled=self.autocompact_disabled,
        )

    def needs_compaction(self, counters: Counters) -> bool:
        """Whether automatic compaction should run: under pressure, on, and not resting."""
        if not self.enabled or self.autocompact_disabled or counters.message_count < counters.rest_until_seq:
            return False
        return self.trigger_of(counters) is not None

    def is_relieved(self, *, active_tokens: int, active_messages: int) -> bool:
        """Whether an automatic run has made enough room to stop."""
        goal = min(self.compaction_goal * self.model_token_budget, self.threshold_tokens - 1)
        ease = goal / self.threshold_tokens
        return active_tokens <= goal and active_messages <= self.max_active_messages * ease

    def target_of(self, source_tokens: int, *, depth: int) -> int:
        """Return the target of a summary of this depth, made from `source_tokens`."""
        if depth == 0:
            return min(self.leaf_target_tokens, max(1, int(LEAF_SHARE * source_tokens)))
        return min(self.condensed_target_tokens, max(1, int(CONDENSED_SHARE * source_tokens)))

    def least_worthwhile(self, *, depth: int) -> int:
        """The fewest source tokens that are worth a summary of this depth."""
        return next(tokens for tokens in count(1) if self._is_worthwhile(tokens, depth=depth))

    def require_possible(self) -> None:
        """Raise Invalid for an unknown or unconfigured summarizer or a contradiction."""
        require_configured_chain(self.summarizer)
        if found := " ".join(self.contradictions()):
            raise Invalid(found, code="cannot_be_satisfied")

    def contradictions(self) -> Iterator[str]:
        """Yield a sentence for each contradiction, with the sum that shows it."""
        if self.context_threshold > self.hard_threshold:
            yield (
                f"context_threshold {self.context_threshold} is above hard_threshold {self.hard_threshold}: compaction "
                "would start later than it may be put off. Lower the first or raise the second."
            )
        # A full chunk must be worth a summary, and so must as many leaf summaries as are merged.
        chunk = self.leaf_chunk_tokens
        if not self._is_worthwhile(chunk, depth=0):
            yield (
                f"leaf_chunk_tokens {chunk:,} x {WORTHWHILE} = {_share(chunk)} is less than "
                f"{self._cost(chunk, depth=0)}: no chunk would be worth a summary. It must be "
                f"{self.least_worthwhile(depth=0):,} or more."
            )
        fan_in, leaf = self.condense_fan_in, self.leaf_target_tokens
        sources = fan_in * (leaf + SHELL_TOKENS)
        if self.max_depth != 0 and not self._is_worthwhile(sources, depth=1):
            yield (
                f"condense_fan_in {fan_in} x (leaf_target_tokens {leaf} + {SHELL_TOKENS} for its shell) x {WORTHWHILE} "
                f"= {_share(sources)} is less than {self._cost(sources, depth=1)}: no leaf summaries would be "
                f"condensed. Together they must come to {self.least_worthwhile(depth=1):,} instead of {sources:,}; or "
                "set max_depth to 0, for no condensed summaries."
            )
        if self.enabled and not self.autocompact_disabled:
            yield from self._too_much_that_stays()

    def _too_much_that_stays(self) -> Iterator[str]:
        """Yield contradictions where what is never compacted exceeds a threshold."""
        tail = self.fresh_tail_count
        if tail > self.max_active_messages:
            yield (
                f"fresh_tail_count {tail:,} is more than max_active_messages {self.max_active_messages:,}: compaction "
                "would start for messages that it never touches."
            )
        chunk = self.least_worthwhile(depth=0)
        left = tail * LEAST_MESSAGE_TOKENS + self.target_of(chunk, depth=0) + SHELL_TOKENS
        if left >= self.threshold_tokens:
            yield (
                f"context_threshold {self.context_threshold} x model_token_budget {self.model_token_budget:,} = "
                f"{self.threshold_tokens:,} does not hold what compaction leaves at the least, fresh_tail_count "
                f"{tail:,} x {LEAST_MESSAGE_TOKENS} tokens and {self._cost(chunk, depth=0)}, {left:,} together: it "
                "would start again at every message."
            )

    def _is_worthwhile(self, source_tokens: int, *, depth: int) -> bool:
        return is_worth_summarizing(source_tokens, self.target_of(source_tokens, depth=depth))

    def _cost(self, source_tokens: int, *, depth: int) -> str:
        target = self.target_of(source_tokens, depth=depth)
        return f"the {target:,} + {SHELL_TOKENS} = {target + SHELL_TOKENS:,} tokens of a summary with its shell"


def is_worth_summarizing(source_tokens: int, target: int) -> bool:
    """Whether a summary of `target` tokens costs enough less than its sources."""
    return target + SHELL_TOKENS <= WORTHWHILE * source_tokens


def _share(tokens: int) -> str:
    return f"{WORTHWHILE * tokens:,.1f}".removesuffix(".0")


@dataclass(frozen=True)
class HistoryPolicy(Policy):
    session_quiet_minutes: int = knob(
        30,
        "A conversation gets its session summary after this many minutes without a new message; 0 for only on request.",
        low=0,
        high=525_600,
    )
    # How many session summaries of a project become an arc, and how many arcs an epoch.
    sessions_per_arc: int = 8
    arcs_per_epoch: int = 4
    # How long one job may work, in seconds, before it is released and claimed again.
    deadline_seconds: int = 600
    job_lease_seconds: int = 60
    # The most conversations, and the most projects, for which one sweep requests jobs of a kind.
    most_requested: int = 200
