"""Measure whether the messages since the last summary are worth one. Pure.

Automatic compaction is skipped only if all three measurements are below their thresholds: few substantive turns, few
new names, and few words that no summary has. Skipped messages stay in the context, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compaction.policy import CompactionPolicy
from compaction.summarizing.extractive.identifiers import PIECE, names_of
from compaction.summarizing.extractive.terms import FUNCTION_WORDS, SMALL_TALK

# Shorter words are not counted.
_SHORTEST_WORD = 3


@dataclass(frozen=True)
class Significance:
    """The measurements that the gate compares with the settings of the policy."""

    turns: int
    substantive_turns: int
    new_names: int
    novelty: float

    def is_below(self, policy: CompactionPolicy) -> bool:
        """Whether all measurements are below their thresholds."""
        return (
            self.substantive_turns < policy.significant_turns
            and self.new_names < policy.significant_names
            and self.novelty < policy.significant_novelty
        )


def significance(turns: Sequence[str], *, summaries: Iterable[str], substantive_words: int) -> Significance:
    """Compare the turns with the existing summaries.

    A turn is substantive if at least `substantive_words` of its words are in no turn before it. Function words and
    small talk do not count. Novelty is the share, from 0 to 1, of the turns' distinct words that no summary has; if
    there is no summary, it is 1.
    """
    known_words: set[str] = set()
    known_names: set[str] = set()
    for text in summaries:
        known_words |= _words_of(text)
        known_names |= _names_of(text)
    words_by_turn = [_words_of(turn) for turn in turns]
    words = set().union(*words_by_turn)
    names = set().union(*map(_names_of, turns))
    # A turn that only repeats earlier turns is not substantive.
    earlier: set[str] = set()
    substantive = 0
    for each in words_by_turn:
        substantive += len(each - earlier) >= substantive_words
        earlier |= each
    return Significance(
        turns=len(turns),
        substantive_turns=substantive,
        new_names=len(names - known_names),
        novelty=round(len(words - known_words) / len(words), 4) if words else 0.0,
    )


def _words_of(text: str) -> set[str]:
    found = {piece.lower().strip(".,:;!?-_#*/") for piece in PIECE.findall(text)}
    return {word for word in found if len(word) >= _SHORTEST_WORD} - FUNCTION_WORDS - SMALL_TALK


def _names_of(text: str) -> set[str]:
    return {name for piece in set(PIECE.findall(text)) for name in names_of(piece)}
