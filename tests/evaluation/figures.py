"""What the chapters of `make eval` share: figures, LoCoMo's questions, and the words of a text."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.summarizing.extractive.terms import stem
from tests.conversations.real_data import DATA

# The category of questions for what was never said.
ADVERSARIAL = 5
# A turn in a list of evidence, however it is spelled: "D8:6; D9:17", "D:11:26", "D30:05".
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")

# The stop words of PostgreSQL's English dictionary; with `stem`, the figures are within 0.003 of its lexemes'.
_STOPPED = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
    its itself they them their theirs themselves what which who whom this that these those am is are was were be been
    being have has had having do does did doing a an the and but if or because as until while of at by for with about
    against between into through during before after above below to from up down in out on off over under again further
    then once here there when where why how all any both each few more most other some such no nor not only own same so
    than too very s t can will just don should now
"""
_STOP_WORDS = frozenset(_STOPPED.split())


@dataclass(frozen=True)
class Figure:
    """One measured value; `goal` is what it should reach, None for a peer's."""

    number: int
    measure: str
    method: str
    value: float
    goal: float | None = None
    # Between which values 95 of 100 means lie.
    interval: tuple[float, float] | None = None


def interval(groups: Sequence[Sequence[float]], drawn: random.Random) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of a mean, by groups of what belongs together; None of fewer than two."""
    if len(groups) < 2:
        return None
    sums = [(sum(each), len(each)) for each in groups]
    means = []
    for _ in range(2000):
        chosen = drawn.choices(sums, k=len(sums))
        means.append(sum(total for total, _ in chosen) / sum(size for _, size in chosen))
    means.sort()
    return means[50], means[1949]


def words_of(text: str) -> frozenset[str]:
    """The words worth looking for: all but the stop words, by their stems."""
    return frozenset(stem(word) for word in re.findall(r"[^\W_]+", text.lower()) if word not in _STOP_WORDS)


def questions_of_locomo() -> Iterator[tuple[dict[str, Any], list[str]]]:
    """The questions with an answer, each with the turns that are its evidence."""
    with gzip.open(DATA / "locomo_questions.json.gz", "rt") as file:
        for row in json.load(file):
            if row["category"] != ADVERSARIAL:
                turns = [_EVIDENCE.findall(entry) for entry in row["evidence"]]
                yield row, [f"D{int(session)}:{int(turn)}" for found in turns for session, turn in found]
