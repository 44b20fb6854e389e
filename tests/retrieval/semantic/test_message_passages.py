"""Texts are cut into passages: the same way each time, at the ends of what is said, and nothing said is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retrieval.semantic.message_passages import LONGEST, MOST_CHARACTERS, passages_of

texts = st.lists(st.sampled_from(["word ", "A sentence. ", "\n\n", "x" * 90, "。", "  ", "é", "?! "]), max_size=400)


@given(texts.map("".join))
def test_every_word_is_in_one_passage_and_none_is_too_long(text):
    passages = passages_of(text)

    assert all(0 < each.end - each.start <= LONGEST for each in passages)
    assert all(one.end <= next.start for one, next in zip(passages, passages[1:], strict=False))
    said = "".join(text[each.start : each.end] for each in passages)
    assert [each for each in said if each.isalnum()] == [each for each in text if each.isalnum()]


def test_a_long_text_is_cut_at_the_end_of_a_paragraph_else_of_a_sentence():
    paragraph = "This is said. " * 40
    text = f"{paragraph}\n\n{paragraph}"

    pieces = [text[each.start : each.end] for each in passages_of(text)]

    assert pieces == [paragraph.strip()] * 2
    sentences = "So it is. " * 500
    assert all(sentences[: each.end].endswith(".") for each in passages_of(sentences))


def test_what_holds_no_word_has_no_passage_and_of_a_huge_text_only_the_beginning_has():
    assert passages_of("") == passages_of(" -- \n ...") == []
    assert passages_of("word " * 100_000)[-1].end <= MOST_CHARACTERS
