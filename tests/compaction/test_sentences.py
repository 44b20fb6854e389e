from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summarizing.extractive.clean_text import clean
from compaction.summarizing.extractive.sentences import LONGEST_UNIT, units_of
from tests.compaction.summarizing import any_text


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
