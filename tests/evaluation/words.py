"""What of a text is worth being asked for: its words but the stop words, by their stems."""

from __future__ import annotations

import re

from compaction.summarizing.extractive.terms import stem

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


def words_of(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in re.findall(r"[^\W_]+", text.lower()) if word not in _STOP_WORDS)
