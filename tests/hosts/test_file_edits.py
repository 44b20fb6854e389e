"""Edits of hosts' files: what they did not write stays byte for byte, comments included."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcmsite.hosts import json_edits
from lcmsite.hosts.file_edits import JsonElement, JsonMember, Taken, TextBlock, WholeFile, as_plain, from_plain

MEMBER = JsonMember(("mcpServers", "lcm"), {"url": "http://here", "headers": {"k": "v"}})
ELEMENT = JsonElement(("hooks", "Stop"), {"hooks": [{"type": "command"}]})
FILES = [
    "{}",
    "{}\n",
    '{"a":1}',
    '{\n  "a": 1\n}\n',
    '{\n\t"a": 1, // why\n\t"b": {"c": []} /* so */\n}\n',
    '{"hooks":{"Stop":[{"x":1}]},"z":2}\n',
    '{\r\n    "hooks": {\r\n        "Stop": [\r\n            1\r\n        ]\r\n    }\r\n}\r\n',
    '{"a":1 // last\n}',
    '{\n  "hooks": {\n    "Stop": [\n      {"q": 1} // own\n    ]\n  },\n  "mcpServers": {"other": {}}\n}\n',
    '\ufeff{\n  "a": "\\u00e4 ä // no comment"\n}',
]
TRAILING = '{\n  // why\n  "a": 1,\n  "b": [1, 2,], // so\n}\n'


@pytest.mark.parametrize("edit", [MEMBER, ELEMENT])
@pytest.mark.parametrize("text", FILES)
def test_an_edit_of_json_is_undone_to_the_same_bytes(text, edit):
    edit = edit.placed(text)

    after = edit.apply(text)

    assert edit.is_in(after) and not edit.is_in(text)
    assert edit.undo(after) == text


@pytest.mark.parametrize("edit", [MEMBER, ELEMENT])
def test_comments_and_commas_behind_the_last_item_are_kept(edit):
    after = edit.apply(TRAILING)

    assert "// why" in after and "// so" in after
    assert json_edits.value_of(edit.undo(after)) == {"a": 1, "b": [1, 2]}


@pytest.mark.parametrize("edit", [MEMBER, ELEMENT])
def test_undoing_leaves_what_others_wrote_meanwhile(edit):
    edit = edit.placed(FILES[3])
    value = json_edits.value_of(edit.apply(FILES[3]))
    # As a host writes its file anew, in its own form.
    value["numStartups"] = 3
    value.setdefault("hooks", {}).setdefault("Stop", []).append("theirs")
    value.setdefault("mcpServers", {})["theirs"] = {}

    left = json_edits.value_of(edit.undo(json.dumps(value, indent=4)))

    assert left == {"a": 1, "numStartups": 3, "hooks": {"Stop": ["theirs"]}, "mcpServers": {"theirs": {}}}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["a", "b", "mcpServers"])


@given(
    st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3), st.sampled_from([None, 1, 2, "\t"])
)
def test_any_object_is_edited_as_its_value_would_be(value, indent):
    text = json.dumps(value, indent=indent)
    edit = MEMBER.placed(text)

    after = edit.apply(text)

    assert json.loads(after) == {**value, "mcpServers": {**value.get("mcpServers", {}), "lcm": MEMBER.value}}
    assert json.loads(edit.undo(after)) == value


def test_an_entry_that_is_there_already_is_left_alone():
    with pytest.raises(Taken, match=r"mcpServers\.lcm"):
        MEMBER.apply('{"mcpServers": {"lcm": {"url": "mine"}}}')
    with pytest.raises(Taken, match=r"mcp_servers\.lcm"):
        TextBlock("[mcp_servers.lcm]", table=("mcp_servers", "lcm")).apply("[mcp_servers.lcm]\nurl = 'mine'\n")
    with pytest.raises(Taken):
        WholeFile("ours").apply("theirs")


@pytest.mark.parametrize("text", ['{"a": 1', '{"a" 1}', "[1", '{"a": 1} x', "{a: 1}", '{"hooks": 3}'])
def test_what_is_no_json_object_with_room_is_refused(text):
    with pytest.raises(ValueError):
        ELEMENT.apply(text)


@pytest.mark.parametrize("text", ["", "model = 'x'\n", "model = 'x'", "# why\r\nmodel = 'x'\r\n", "[a]\nb = 1\n\n"])
def test_a_table_of_toml_comes_and_goes(text):
    block = TextBlock('[mcp_servers.lcm]\nurl = "http://here"', table=("mcp_servers", "lcm"))

    after = block.apply(text)

    assert tomllib.loads(after)["mcp_servers"] == {"lcm": {"url": "http://here"}}
    assert block.is_in(after)
    assert block.undo(after).strip() == text.strip()
    if text.endswith("\n"):
        assert block.undo(after) == text
    assert block.undo(after + "\n[theirs]\n").endswith("[theirs]\n")


def test_toml_that_leaves_no_room_is_refused():
    with pytest.raises(ValueError):
        TextBlock("[mcp_servers.lcm]", table=("mcp_servers", "lcm")).apply("mcp_servers = {}\n")


@pytest.mark.parametrize("edit", [MEMBER, ELEMENT, TextBlock("x", table=("a", "b")), WholeFile("x")])
def test_edits_are_recorded_and_read_back(edit):
    assert from_plain(json.loads(json.dumps(as_plain(edit)))) == edit
