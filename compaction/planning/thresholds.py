"""Settings that are good one by one and cannot be satisfied together, each with the sum that shows it. Pure.

Only what can never work is refused, by the planner's own rules: a target that is long for its chunk is cut to a share
of it, and a goal above the threshold counts as just below it, so neither is wrong. Of a summary we reckon with what it
is planned to cost: its target, and the shell around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from compaction.planning import planner
from compaction.planning.planner import SHELL_TOKENS, WORTHWHILE
from compaction.policy import CompactionPolicy

# What the shortest raw message costs: its framing, which is the store's MESSAGE_OVERHEAD_TOKENS, and one token.
LEAST_MESSAGE_TOKENS = 5


def contradictions(policy: CompactionPolicy) -> tuple[str, ...]:
    """A sentence for each; none where the settings can be satisfied."""
    return (
        *_of_thresholds(policy),
        *_of_leaf_summaries(policy),
        *_of_condensed_summaries(policy),
        *_of_pressure(policy),
    )


def _of_thresholds(policy: CompactionPolicy) -> Iterator[str]:
    """Compaction starts before it may no longer be put off."""
    if policy.context_threshold > policy.hard_threshold:
        yield (
            f"context_threshold {policy.context_threshold} is above hard_threshold {policy.hard_threshold}: compaction "
            "would start later than it may be put off. Lower the first or raise the second."
        )


def _of_leaf_summaries(policy: CompactionPolicy) -> Iterator[str]:
    """A full chunk must be worth a summary, or only messages that exceed the chunk size would ever get one."""
    chunk = policy.leaf_chunk_tokens
    if not _is_worthwhile(chunk, depth=0, policy=policy):
        yield (
            f"leaf_chunk_tokens {chunk:,} x {WORTHWHILE} = {_share(chunk)} is less than "
            f"{_cost(chunk, depth=0, policy=policy)}: no chunk would be worth a summary. It must be "
            f"{least_worthwhile(policy, depth=0):,} or more."
        )


def _of_condensed_summaries(policy: CompactionPolicy) -> Iterator[str]:
    """As many leaf summaries as are merged must be worth a condensed one, or they would pile up for ever."""
    fan_in, leaf = policy.condense_fan_in, policy.leaf_target_tokens
    sources = fan_in * (leaf + SHELL_TOKENS)
    if policy.max_depth != 0 and not _is_worthwhile(sources, depth=1, policy=policy):
        yield (
            f"condense_fan_in {fan_in} x (leaf_target_tokens {leaf} + {SHELL_TOKENS} for its shell) x {WORTHWHILE} = "
            f"{_share(sources)} is less than {_cost(sources, depth=1, policy=policy)}: no leaf summaries would be "
            f"condensed. Together they must come to {least_worthwhile(policy, depth=1):,} instead of {sources:,}; or "
            "set max_depth to 0, for no condensed summaries."
        )


def _of_pressure(policy: CompactionPolicy) -> Iterator[str]:
    """What always stays in the context must leave it below the points at which compaction starts."""
    if not policy.enabled or policy.autocompact_disabled:
        return
    tail = policy.fresh_tail_count
    if tail > policy.max_active_messages:
        yield (
            f"fresh_tail_count {tail:,} is more than max_active_messages {policy.max_active_messages:,}: compaction "
            "would start for messages that it never touches."
        )
    threshold = planner.threshold_tokens(policy)
    chunk = least_worthwhile(policy, depth=0)
    left = tail * LEAST_MESSAGE_TOKENS + planner.target_of(chunk, depth=0, policy=policy) + SHELL_TOKENS
    if left >= threshold:
        yield (
            f"context_threshold {policy.context_threshold} x model_token_budget {policy.model_token_budget:,} = "
            f"{threshold:,} does not hold what compaction leaves at the least, fresh_tail_count {tail:,} x "
            f"{LEAST_MESSAGE_TOKENS} tokens and {_cost(chunk, depth=0, policy=policy)}, {left:,} together: it would "
            "start again at every message."
        )


def least_worthwhile(policy: CompactionPolicy, *, depth: int) -> int:
    """The fewest source tokens that are worth a summary of this depth."""
    return next(tokens for tokens in count(1) if _is_worthwhile(tokens, depth=depth, policy=policy))


def _is_worthwhile(source_tokens: int, *, depth: int, policy: CompactionPolicy) -> bool:
    target = planner.target_of(source_tokens, depth=depth, policy=policy)
    return target + SHELL_TOKENS <= WORTHWHILE * source_tokens


def _cost(source_tokens: int, *, depth: int, policy: CompactionPolicy) -> str:
    target = planner.target_of(source_tokens, depth=depth, policy=policy)
    return f"the {target:,} + {SHELL_TOKENS} = {target + SHELL_TOKENS:,} tokens of a summary with its shell"


def _share(tokens: int) -> str:
    return f"{WORTHWHILE * tokens:,.1f}".removesuffix(".0")
