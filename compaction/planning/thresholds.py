"""When compaction is needed, and which settings contradict each other. Pure.

Contradictions are settings that are good one by one and cannot be satisfied together. Only what can never work is
refused: a target that is long for its chunk is cut to a share of it, and a goal above the threshold counts as just
below it, so neither is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Protocol

from compaction.types import CompactionDecision, Trigger
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
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


class Limits(Protocol):
    """The settings that are compared here.

    The policy satisfies it and imports this module, not the reverse.
    """

    @property
    def enabled(self) -> bool: ...
    @property
    def autocompact_disabled(self) -> bool: ...
    @property
    def model_token_budget(self) -> int: ...
    @property
    def context_threshold(self) -> float: ...
    @property
    def hard_threshold(self) -> float: ...
    @property
    def compaction_goal(self) -> float: ...
    @property
    def max_active_messages(self) -> int: ...
    @property
    def fresh_tail_count(self) -> int: ...
    @property
    def leaf_chunk_tokens(self) -> int: ...
    @property
    def leaf_target_tokens(self) -> int: ...
    @property
    def condensed_target_tokens(self) -> int: ...
    @property
    def condense_fan_in(self) -> int: ...
    @property
    def max_depth(self) -> int: ...


def threshold_tokens(limits: Limits) -> int:
    """The active tokens from which on compaction is needed."""
    return max(1, int(limits.context_threshold * limits.model_token_budget))


def hard_tokens(limits: Limits) -> int:
    """The active tokens from which on nothing is put off."""
    return max(threshold_tokens(limits), int(limits.hard_threshold * limits.model_token_budget))


def trigger_of(counters: Counters, limits: Limits) -> Trigger | None:
    """What puts the conversation under pressure, if anything does."""
    if counters.active_tokens >= threshold_tokens(limits):
        return Trigger.TOKENS
    return Trigger.MESSAGES if counters.active_messages > limits.max_active_messages else None


def decide(*, conversation_id: int, counters: Counters, limits: Limits) -> CompactionDecision:
    """Compare a conversation's counters with its thresholds; nothing is read."""
    trigger = trigger_of(counters, limits)
    hard = hard_tokens(limits)
    return CompactionDecision(
        conversation_id=conversation_id,
        should_compact=trigger is not None,
        trigger=trigger,
        active_tokens=counters.active_tokens,
        threshold_tokens=threshold_tokens(limits),
        hard_tokens=hard,
        is_hard=counters.active_tokens >= hard,
        model_token_budget=limits.model_token_budget,
        active_messages=counters.active_messages,
        max_active_messages=limits.max_active_messages,
    )


def needs_compaction(counters: Counters, limits: Limits) -> bool:
    """Whether automatic compaction should run.

    Under pressure, switched on, and not resting for lack of material.
    """
    if not limits.enabled or limits.autocompact_disabled or counters.message_count < counters.rest_until_seq:
        return False
    return trigger_of(counters, limits) is not None


def is_relieved(*, active_tokens: int, active_messages: int, limits: Limits) -> bool:
    """Whether an automatic run has made enough room to stop."""
    goal = min(limits.compaction_goal * limits.model_token_budget, threshold_tokens(limits) - 1)
    ease = goal / threshold_tokens(limits)
    return active_tokens <= goal and active_messages <= limits.max_active_messages * ease


def target_of(source_tokens: int, *, depth: int, limits: Limits) -> int:
    """The most tokens of a summary of this depth, made from so many."""
    if depth == 0:
        return min(limits.leaf_target_tokens, max(1, int(LEAF_SHARE * source_tokens)))
    return min(limits.condensed_target_tokens, max(1, int(CONDENSED_SHARE * source_tokens)))


def is_worth_summarizing(source_tokens: int, target: int) -> bool:
    """Whether a summary of so many tokens is enough cheaper than its sources."""
    return target + SHELL_TOKENS <= WORTHWHILE * source_tokens


def contradictions(limits: Limits) -> tuple[str, ...]:
    """A sentence for each contradiction, with the sum that shows it."""
    return (
        *_of_thresholds(limits),
        *_of_leaf_summaries(limits),
        *_of_condensed_summaries(limits),
        *_of_pressure(limits),
    )


def _of_thresholds(limits: Limits) -> Iterator[str]:
    """Compaction starts before it may no longer be put off."""
    if limits.context_threshold > limits.hard_threshold:
        yield (
            f"context_threshold {limits.context_threshold} is above hard_threshold {limits.hard_threshold}: compaction "
            "would start later than it may be put off. Lower the first or raise the second."
        )


def _of_leaf_summaries(limits: Limits) -> Iterator[str]:
    """A full chunk is worth a summary.

    Otherwise only messages that exceed the chunk size would ever get one.
    """
    chunk = limits.leaf_chunk_tokens
    if not _is_worthwhile(chunk, depth=0, limits=limits):
        yield (
            f"leaf_chunk_tokens {chunk:,} x {WORTHWHILE} = {_share(chunk)} is less than "
            f"{_cost(chunk, depth=0, limits=limits)}: no chunk would be worth a summary. It must be "
            f"{least_worthwhile(limits, depth=0):,} or more."
        )


def _of_condensed_summaries(limits: Limits) -> Iterator[str]:
    """As many leaf summaries as are merged are worth a condensed one."""
    fan_in, leaf = limits.condense_fan_in, limits.leaf_target_tokens
    sources = fan_in * (leaf + SHELL_TOKENS)
    if limits.max_depth != 0 and not _is_worthwhile(sources, depth=1, limits=limits):
        yield (
            f"condense_fan_in {fan_in} x (leaf_target_tokens {leaf} + {SHELL_TOKENS} for its shell) x {WORTHWHILE} = "
            f"{_share(sources)} is less than {_cost(sources, depth=1, limits=limits)}: no leaf summaries would be "
            f"condensed. Together they must come to {least_worthwhile(limits, depth=1):,} instead of {sources:,}; or "
            "set max_depth to 0, for no condensed summaries."
        )


def _of_pressure(limits: Limits) -> Iterator[str]:
    """What always stays in the context leaves it below the threshold."""
    if not limits.enabled or limits.autocompact_disabled:
        return
    tail = limits.fresh_tail_count
    if tail > limits.max_active_messages:
        yield (
            f"fresh_tail_count {tail:,} is more than max_active_messages {limits.max_active_messages:,}: compaction "
            "would start for messages that it never touches."
        )
    threshold = threshold_tokens(limits)
    chunk = least_worthwhile(limits, depth=0)
    left = tail * LEAST_MESSAGE_TOKENS + target_of(chunk, depth=0, limits=limits) + SHELL_TOKENS
    if left >= threshold:
        yield (
            f"context_threshold {limits.context_threshold} x model_token_budget {limits.model_token_budget:,} = "
            f"{threshold:,} does not hold what compaction leaves at the least, fresh_tail_count {tail:,} x "
            f"{LEAST_MESSAGE_TOKENS} tokens and {_cost(chunk, depth=0, limits=limits)}, {left:,} together: it would "
            "start again at every message."
        )


def least_worthwhile(limits: Limits, *, depth: int) -> int:
    """The fewest source tokens that are worth a summary of this depth."""
    return next(tokens for tokens in count(1) if _is_worthwhile(tokens, depth=depth, limits=limits))


def _is_worthwhile(source_tokens: int, *, depth: int, limits: Limits) -> bool:
    return is_worth_summarizing(source_tokens, target_of(source_tokens, depth=depth, limits=limits))


def _cost(source_tokens: int, *, depth: int, limits: Limits) -> str:
    target = target_of(source_tokens, depth=depth, limits=limits)
    return f"the {target:,} + {SHELL_TOKENS} = {target + SHELL_TOKENS:,} tokens of a summary with its shell"


def _share(tokens: int) -> str:
    return f"{WORTHWHILE * tokens:,.1f}".removesuffix(".0")
