from __future__ import annotations

from collections import Counter
from itertools import islice
from statistics import median

import pytest

from conversations.content.flattening import flattened
from conversations.types import Role
from tests.benchmarks.corpus import NEEDLE_EVERY, Corpus, needle


def test_the_same_seed_says_the_same_whatever_the_length():
    longer = list(islice(Corpus(2000, seed=3), 500))

    shorter = list(Corpus(500, seed=3))

    assert shorter == longer
    assert shorter != list(Corpus(500, seed=4))


def test_every_needle_stands_in_one_message_only():
    texts = [flattened(message.parts) for message in Corpus(3 * NEEDLE_EVERY)]

    for number in (NEEDLE_EVERY, 2 * NEEDLE_EVERY, 3 * NEEDLE_EVERY):
        holding = [place for place, text in enumerate(texts, start=1) if needle(1, number) in text]
        assert holding == [number]


def test_roles_and_lengths_are_those_of_an_agent_at_work():
    messages = list(Corpus(5000))

    roles = Counter(message.role for message in messages)
    lengths = [len(flattened(message.parts)) for message in messages]

    assert roles[Role.USER] / 5000 == pytest.approx(0.16, abs=0.02)
    assert roles[Role.TOOL] / 5000 == pytest.approx(0.34, abs=0.02)
    assert median(lengths) == pytest.approx(232, rel=0.2)
    assert max(lengths) > 10_000
