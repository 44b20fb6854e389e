"""A choice made to fit exactly: filled while room is left, taken back while it is over, whatever counts the tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compaction.summarizing.extractive.coverage import Coverage

# Joined text costs less than its pieces (heads are shared), so a first filling leaves room. A few rounds use it up.
_ROUNDS = 5
_WORTH_FILLING = 6


def pack(
    coverage: Coverage,
    *,
    render: Callable[[Sequence[int]], str],
    count_tokens: Callable[[str], int],
    budget: int,
) -> str:
    """The text of what the coverage has chosen and chooses now, within the budget; empty if nothing fits."""
    text = render(coverage.chosen)
    for _ in range(_ROUNDS):
        room = budget - count_tokens(text)
        if room < _WORTH_FILLING or not coverage.fill(room):
            break
        text = render(coverage.chosen)
    while coverage.chosen and (tokens := count_tokens(text)) > budget:
        # In proportion, so that even a counter that has nothing to do with length needs only a few steps.
        coverage.drop(max(1, len(coverage.chosen) * (tokens - budget) // (2 * tokens)))
        text = render(coverage.chosen)
    return text
