"""How a text is cleaned, cut into units, and searched for names and terms."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summarizing.extractive.clean_text import LONGEST_READ, clean, fit
from compaction.summarizing.extractive.identifiers import LONGEST_NAME, PIECE, names_of
from compaction.summarizing.extractive.sentences import LONGEST_UNIT, units_of
from compaction.summarizing.extractive.terms import stem, terms_of
from tests.compaction.summarizing import COUNTERS, any_text


def texts(text: str, *, prose: bool = True) -> list[str]:
    return [unit.text for unit in units_of(text, prose=prose)]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("It works. Does it? Yes! Good.", ["It works.", "Does it?", "Yes!", "Good."]),
        ('She said "Stop." Then he left.', ['She said "Stop."', "Then he left."]),
        ("Ask Dr. Vogel, e.g. about v1.2.3 of main.py.", ["Ask Dr. Vogel, e.g. about v1.2.3 of main.py."]),
        ("数据库搬家了。真的吗？是的！", ["数据库搬家了。", "真的吗？", "是的！"]),
        ("Look at this. [shared image: a dog. On grass]", ["Look at this.", "[shared image: a dog.", "On grass]"]),
        ("- first point\n2. second point\n# Title", ["first point", "second point", "Title"]),
        ("a line that was\nwrapped by hand", ["a line that was wrapped by hand"]),
        ("One thing.\n\nAnother  thing\tagain.", ["One thing.", "Another thing again."]),
    ],
)
def test_prose_is_cut_into_sentences(text, units):
    assert texts(text) == units


def test_a_fenced_block_is_cut_into_lines():
    text = "Run this:\n```sh\nmake test. And\n  make bench\n```\nThen look."

    assert [(unit.text, unit.is_prose) for unit in units_of(text, prose=True)] == [
        ("Run this:", True),
        ("make test. And", False),
        ("make bench", False),
        ("Then look.", True),
    ]


def test_what_a_tool_printed_is_cut_into_lines_without_their_numbers():
    assert texts("  12→import os. Now\n  13\tx = 1\n---\n}\n", prose=False) == ["import os. Now", "x = 1"]


@pytest.mark.parametrize("text", [json.dumps(["value"] * 500), "x" * 5000, "word " * 1000])
def test_what_has_no_sentences_is_cut_where_it_can_be(text):
    pieces = texts(text, prose=False)

    assert len(pieces) > 2
    assert max(map(len, pieces)) <= LONGEST_UNIT


@given(text=any_text.map(clean), prose=st.booleans())
def test_no_word_gets_lost(text, prose):
    # Of a call only a part is shown, on purpose.
    text = text.replace("[tool_call", "")
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?m)^\s{0,9}(?:```|~~~).*$", "", text))

    kept = "\n".join(texts(text, prose=prose))

    assert [word for word in words if word not in kept] == []


CALL = "[tool_call %s] %s"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('{"command": "ls -la", "timeout": 5}', "Run(ls -la, timeout=5)"),
        ('{"replace_all": false, "path": "a.py", "limit": null}', "Run(a.py)"),
        ('{"path": "a.py", "content": "one\\ntwo"}', "Run(a.py)"),
        ('{"command": ["bash", "-c", "make"]}', "Run(command=bash -c make)"),
        ('{"path": "a\\u0000b\\ud800.py"}', "Run(a b .py)"),
        ("{}", "Run()"),
        ("{broken", "Run({broken)"),
        ("[1, 2]", "Run([1, 2])"),
    ],
)
def test_a_call_is_shown_briefly(given, shown):
    (unit,) = units_of(CALL % ("Run", given), prose=True)

    assert unit.text == shown
    assert unit.is_call


def test_the_body_of_an_edit_is_hidden_but_can_be_searched_for_names():
    (unit,) = units_of(CALL % ("Edit", '{"path": "a.py", "new_string": "x = load_rows()\\nreturn x"}'), prose=True)

    assert unit.text == "Edit(a.py)"
    assert "load_rows" in unit.hidden


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


def test_colours_and_controls_are_cleaned_away():
    assert clean("\x1b[31mred\x1b[0m\r\nnext\0line\ud800.") == "red\nnext line ."


def test_of_a_monster_the_beginning_and_the_end_are_read():
    text = clean("begin " + "x" * 3 * LONGEST_READ + " end")

    assert len(text) <= LONGEST_READ + 1
    assert text.startswith("begin ")
    assert text.endswith(" end")


@given(text=any_text, limit=st.integers(0, 20), count=st.sampled_from(list(COUNTERS.values())))
def test_what_fits_is_a_beginning_within_the_limit(text, limit, count):
    fitting = fit(text, limit, count)

    assert text.startswith(fitting)
    assert count(fitting) <= limit


def test_what_fits_is_as_long_as_it_can_be():
    assert fit("one two three four", 3, lambda text: len(text.split())).split() == ["one", "two", "three"]


@pytest.mark.parametrize(
    "words", [("run", "runs", "running"), ("city", "cities"), ("make", "makes", "making"), ("plan", "planned", "plans")]
)
def test_forms_of_a_word_are_one_term(words):
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize("word", ["address", "bus", "this", "bring", "need", "it", "os"])
def test_what_only_looks_like_an_ending_stays(word):
    assert stem(word) == word


def test_pairs_of_characters_are_the_terms_of_chinese():
    assert terms_of("搬到上海 port") == {"搬到", "到上", "上海", "port"}


def test_words_that_only_join_others_are_no_terms_but_denials_are():
    assert terms_of("It is not in the house") == {"not", "hous"}
