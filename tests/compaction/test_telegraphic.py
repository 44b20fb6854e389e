from __future__ import annotations

import pytest

from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from tests.compaction.summarizing import a_request, said

# Long enough that half of the sources is room for all the rest, and nothing that a telegram would keep.
IDLE = "And so it is, as it was, for all of us. " * 20


def telegram(*texts, target=120, role="user"):
    sources = said(*texts, IDLE, role=role)
    body, _, closing = TelegraphicSummarizer().summarize(a_request(sources, target=target)).text.rpartition("\n")
    assert closing.startswith("Expand for details about:")
    return body


@pytest.mark.parametrize(
    ("texts", "role", "kept"),
    [
        # Words that only join others go first.
        (
            ["We have moved the ledger to the office in Lisbon because of the rent."],
            "user",
            ["moved ledger office Lisbon rent"],
        ),
        # A denial stays one.
        (
            ["The export works on the old cluster.", "The export does not work on the replica. It didn't start."],
            "user",
            ["not work", "not start"],
        ),
        # Names stay whole, and a monster of a word does not fill the telegram.
        (
            ["src/ledger/rows.py:12: error in order_by_key() of sha 3eda929f1"],
            "tool",
            ["src/ledger/rows.py", "order_by_key", "3eda929f1"],
        ),
        (["x" * 4000 + " The gateway certificate expired."], "user", ["gateway certificate expired"]),
    ],
)
def test_the_telling_words_are_kept(texts, role, kept):
    text = telegram(*texts, role=role)

    assert [each for each in kept if each not in text] == []


def test_what_was_said_is_not_said_again():
    text = telegram(
        "The ledger is in Lisbon.", "Is the ledger still in Lisbon? The ledger has 40 rows there, in Lisbon."
    )

    assert text.count("ledger") == text.count("Lisbon") == 1
    assert "40 rows" in text


def test_it_ends_with_how_much_was_left_out():
    draft = TelegraphicSummarizer().summarize(
        a_request(said(*(f"topic{n} concerns matter{n} and case{n}" for n in range(100))), target=80)
    )

    assert draft.text.endswith(f"\nExpand for details about: {draft.left_out} of 100 messages.")
    assert draft.left_out > 0
