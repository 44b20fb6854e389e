"""What the field does when no model answers, written anew: texts of messages in, a text within the target out."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from compaction.summarizing.extractive.clean_text import fit

CountTokens = Callable[[str], int]


def head(texts: Sequence[str], target: int, count: CountTokens) -> str:
    """The beginning."""
    return fit("\n".join(texts), target, count)


def head_and_tail(texts: Sequence[str], target: int, count: CountTokens) -> str:
    """40 % of the target from the beginning and 40 % from the end."""
    text = "\n".join(texts)
    if count(text) <= target:
        return text
    part = int(0.4 * target)
    return f"{fit(text, part, count)} ... {fit(text[::-1], part, lambda end: count(end[::-1]))[::-1]}"


def first_and_last_sentences(texts: Sequence[str], target: int, count: CountTokens) -> str:
    """The first and the last sentence of every message, as far as the target goes."""
    ends = [list(dict.fromkeys((found[0], found[-1]))) for found in map(_sentences, texts) if found]
    return fit("\n".join(" ".join(pair) for pair in ends), target, count)


def random_sentences(texts: Sequence[str], target: int, count: CountTokens) -> str:
    """Sentences drawn by lot, in their order: what knowing nothing achieves."""
    drawn = [(place, sentence) for place, text in enumerate(texts) for sentence in _sentences(text)]
    random.Random(1).shuffle(drawn)
    kept: list[tuple[int, str]] = []
    left = target
    for place, sentence in drawn:
        cost = count(f"{sentence}\n")
        if cost <= left:
            kept.append((place, sentence))
            left -= cost
        if left < 3:
            break
    return "\n".join(sentence for _, sentence in sorted(kept, key=lambda pair: pair[0]))


def _sentences(text: str) -> list[str]:
    return [found for line in text.split("\n") for found in re.split(r"(?<=[.!?])\s+", line) if found.strip()]


FALLBACKS: dict[str, Callable[[Sequence[str], int, CountTokens], str]] = {
    "head": head,
    "head 40 % + tail 40 %": head_and_tail,
    "first and last sentences": first_and_last_sentences,
    "random sentences": random_sentences,
}
