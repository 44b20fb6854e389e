from __future__ import annotations

import pytest
from hypothesis import given

from compaction.summarizing.extractive.identifiers import LONGEST_NAME, PIECE, names_of
from tests.compaction.summarizing import any_text


def names(text: str) -> list[str]:
    return [name for piece in PIECE.findall(text) for name in names_of(piece)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see src/ledger/rows.py:12, please", ["src/ledger/rows.py"]),
        ("(/etc/hosts) and ./run.sh and ~/x/y", ["/etc/hosts", "./run.sh", "~/x/y"]),
        ("tests/test_x.py::test_order failed", ["tests/test_x.py", "test_order"]),
        ("call load_rows() or self.loadRows()", ["load_rows", "loadRows"]),
        ("open https://example.org/a?b=1#c.", ["https://example.org/a?b=1#c"]),
        ("commit 3eda929f1, not 1234567 nor deadbeef", ["3eda929f1"]),
        ("error E1101 for booking JG7FMM", ["E1101", "JG7FMM"]),
        ("os.path.join in `conversations.models`", ["os.path.join", "conversations.models"]),
        ("write to anna.berg@example.org", ["anna.berg@example.org"]),
        ("gpt-4o-mini with --dry-run", ["gpt-4o-mini", "--dry-run"]),
        ("ConversationStore, LCM_DATABASE_URL", ["ConversationStore", "LCM_DATABASE_URL"]),
        ("id 0f8fad5b-d9cb-469f-a165-70867728950e.", ["0f8fad5b-d9cb-469f-a165-70867728950e"]),
    ],
)
def test_a_name_is_found_letter_by_letter(text, found):
    assert names(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "and/or input/output",
        "We met on 24/7, i.e. always. Well-known!",
        "Caroline said: It was 2026-05-11T08:38:39.",
        "</div>",
        "3.5 1.2",
        "color: #ffffff66; font-size: 0.85em; margin: 1.25rem",
    ],
)
def test_prose_has_no_names(text):
    assert names(text.replace("</", "<")) == []


@given(text=any_text)
def test_a_name_stands_in_its_text_and_is_bounded(text):
    for name in names(text):
        assert name in text
        assert len(name) <= LONGEST_NAME
