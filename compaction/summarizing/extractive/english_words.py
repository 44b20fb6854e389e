"""Bands of English words by how much they say.

A stretch of one conversation is too short to learn which words are common: seen once among thirty messages, "awesome"
looks as rare as "Lisbon". So the everyday vocabulary is listed in `english/`, one file for each band. The lists are
general knowledge of English, not fitted to any conversation; a word of another language is in no band and is weighed by
how often and how widely the source itself uses it.
"""

from __future__ import annotations

from pathlib import Path

_LISTS = Path(__file__).parent / "english"


def _band(name: str) -> frozenset[str]:
    return frozenset((_LISTS / f"{name}.txt").read_text(encoding="utf-8").split())


# Grammar and interjections: they carry no fact by themselves, and are the first words a telegram drops. Negations are
# left out on purpose: "does not work" must not become "work".
FUNCTION_WORDS = _band("function_words")

# In almost every conversation, whatever its subject: pleasantries, feelings, talk about talking, and the verbs that
# only carry another word ("make a plan", "get well", "have a look").
SMALL_TALK = _band("small_talk")

# The frame of every account: when, who in general, and the plainest doings. "When" is half of what is looked for later.
PLAIN = _band("plain")

# Words that name something, but something met every day.
EVERYDAY = _band("everyday")

# Common verbs, qualities and abstractions: they colour a statement more than they make it.
COMMON = _band("common")

# What every terminal, file and tool answer is full of.
PROGRAMMING = _band("programming")
