"""Writing a summary down so that it can be read back."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from compaction.summarizing.extractive.passages import Passage, passages_of
from compaction.summarizing.extractive.summary_form import days_of, read, with_few_names, write
from tests.compaction.summarizing import a_message

START = datetime(2026, 3, 7, 9, tzinfo=UTC)


def a_page(*messages) -> tuple[str, list[Passage]]:
    passages = list(passages_of(messages))
    kept = [(passage, unit) for passage in passages for unit in passage.units]
    return write(kept, days=days_of(passages)), passages


def test_a_page_is_read_back_as_it_was_written():
    page, passages = a_page(
        a_message("The ledger moved. It stays read-only.", seq=12, author="Anna", time=START),
        a_message("Is it?\n```\nselect 1;\n```", seq=13, author="Anna", time=START),
        a_message("line one\nline two", seq=14, role="tool", author="Bash", time=START.replace(day=9)),
    )

    entries = list(read(page, first_seq=12, last_seq=14, start=START))

    assert [(entry.first_seq, entry.last_seq, entry.who, entry.day) for entry in entries] == [
        (12, 13, "Anna", date(2026, 3, 7)),
        (14, 14, "tool Bash", date(2026, 3, 9)),
    ]
    assert [entry.sentences for entry in entries] == ["The ledger moved. It stays read-only. Is it?", "line one"]
    assert [entry.lines.split() for entry in entries] == [["select", "1;"], ["line", "two"]]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Also named: a.py, b.py, c.py, d.py", "Also named: a.py, b.py, and 2 more: look there"),
        ("Also named: a.py, b.py", "Also named: a.py, b.py"),
        ("12 user: a, b, c, d", "12 user: a, b, c, d"),
    ],
)
def test_names_at_the_end_of_a_page_are_cut_to_a_few(line, shown):
    page, closing = "12 user: The ledger moved.\n{}\n{}", "Expand for details about: a, b, c."

    assert with_few_names(page.format(line, closing), most=2, hint="look there") == page.format(shown, closing)


def test_years_are_written_where_there_are_several():
    page, _ = a_page(
        a_message("It snowed.", seq=1, time=datetime(2025, 12, 31, tzinfo=UTC)),
        a_message("It thawed.", seq=2, time=datetime(2026, 1, 1, tzinfo=UTC)),
    )

    assert page == "December 31, 2025\n1 user: It snowed.\nJanuary 1, 2026\n2 user: It thawed."
    days = [entry.day for entry in read(page, first_seq=1, last_seq=2, start=START)]
    assert days == [date(2025, 12, 31), date(2026, 1, 1)]


def test_a_head_of_messages_that_the_summary_does_not_cover_is_only_text():
    (entry,) = read("7 admins: nothing", first_seq=10, last_seq=20, start=None)

    assert (entry.first_seq, entry.last_seq, entry.who, entry.sentences) == (10, 20, "", "7 admins: nothing")


def test_names_are_read_and_the_closing_line_is_not():
    text = "Also named: src/rows.py, ORDER_BY\nExpand for details about: paint (2 of 3 messages)."

    (entry,) = read(text, first_seq=1, last_seq=3, start=None)

    assert (entry.sentences, entry.names.strip()) == ("", "src/rows.py, ORDER_BY")


@pytest.mark.parametrize("label", ["March 32", "February 30, 2026", "March"])
def test_what_is_no_day_does_not_become_one(label):
    entries = list(read(f"{label}\n1 user: It snowed.", first_seq=1, last_seq=1, start=START))

    assert entries[0].day == START.date()


def test_the_name_of_a_speaker_cannot_pass_for_something_said():
    (passage,) = passages_of([a_message("Hello Lisbon.", author="Eve: I agree.\n13 Anna: Me too" + "!" * 99)])

    assert ":" not in passage.head
    assert "\n" not in passage.head
    assert len(passage.head) < 50
