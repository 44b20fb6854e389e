"""Whatever a part holds, its hash is that of its values, whether the database or Python computes it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from tests.conversations.appending import UNLIKE_TEXT
from tests.conversations.strategies import json_of, texts
from tests.factories import a_conversation, say

pytestmark = pytest.mark.django_db

VALUES: dict[str, Any] = {
    **UNLIKE_TEXT,
    "patch_files": ("a.py", "b c.py", "", "{", "NULL", 'a"b'),
    # By the alphabet, which is also shorter keys first.
    "tool_input": {"": "", "Z": 1, "aa": {"lines": [-5, {"all": True}]}, "path": "x, y: z", "quote": 'say "\\n"'},
    "metadata": {},
}
# What the database writes otherwise than Python.
OTHERWISE: tuple[dict[str, Any], ...] = (
    {"text_content": "naïve"},
    {"text_content": "\x7f"},
    {"patch_files": ("ü.py",)},
    {"tool_input": {"path": "x.py", "limit": 5}},
    {"tool_input": {"path": None}},
    {"metadata": {"ключ": 1}},
)


def assert_found_whole(*parts: NewPart) -> None:
    conversation_id = a_conversation().conversation_id
    say(conversation_id, *(NewMessage(Role.ASSISTANT, parts=(part,)) for part in parts))
    assert IntegrityChecker.from_settings().run(conversation_id=conversation_id).is_clean


def full(part_type: PartType, **values: Any) -> NewPart:
    """A part with a value in every column."""
    names = [each.name for each in fields(NewPart) if each.name != "part_type"]
    given = {name: f"the {name}:\n\t\x01 \"\\/\" <'%s'>" for name in names} | VALUES | values
    return NewPart(part_type, **given)


def test_parts_of_every_type_with_a_value_in_every_column_are_found_whole():
    assert_found_whole(*(part for each in PartType for part in (full(each), NewPart(each))))
    assert_found_whole(*(full(PartType.TOOL, **values) for values in OTHERWISE))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.none() | texts, arguments=json_of(texts), metadata=json_of(texts), files=st.lists(texts, max_size=3))
def test_whatever_a_part_holds_it_is_found_whole(db, text, arguments, metadata, files):
    assert_found_whole(
        NewPart(PartType.TOOL, text_content=text, tool_input=arguments, metadata=metadata, patch_files=tuple(files))
    )
