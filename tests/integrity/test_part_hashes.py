"""The database proves what it can of the parts' hashes; what it cannot prove is hashed again from the values."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.content import hashing
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from integrity.invariants.hash_invariants import parts_match_their_hashes
from tests.conversations.appending import UNLIKE_TEXT
from tests.conversations.strategies import json_of, texts
from tests.factories import a_conversation, a_store

pytestmark = pytest.mark.django_db

VALUES: dict[str, Any] = {
    **UNLIKE_TEXT,
    "patch_files": ("a.py", "b c.py", "", "{", "NULL", 'a"b'),
    # By the alphabet, which is also shorter keys first.
    "tool_input": {"": "", "Z": 1, "aa": {"lines": [-5, {"all": True}]}, "path": "x, y: z", "quote": 'say "\\n"'},
    "metadata": {},
}


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The values of every part that is hashed by us from now on."""
    seen = []
    part_hash = hashing.part_hash

    def hash_and_note(values):
        seen.append(values)
        return part_hash(values)

    monkeypatch.setattr(hashing, "part_hash", hash_and_note)
    return seen


def said(*parts: NewPart) -> int:
    conversation_id = a_conversation().conversation_id
    a_store().append_messages(
        conversation_id=conversation_id, messages=[NewMessage(Role.ASSISTANT, parts=(part,)) for part in parts]
    )
    return conversation_id


def full(part_type: PartType, **values: Any) -> NewPart:
    """A part with a value in every column."""
    names = [each.name for each in fields(NewPart) if each.name != "part_type"]
    given = {name: f"the {name}:\n\t\x01 \"\\/\" <'%s'>" for name in names} | VALUES | values
    return NewPart(part_type, **given)


@pytest.mark.parametrize("part_type", PartType)
def test_parts_of_plain_text_and_plain_objects_are_proven_by_the_database(part_type, hashed):
    conversation_id = said(full(part_type), NewPart(part_type))
    hashed.clear()

    found = parts_match_their_hashes([conversation_id])

    assert found.count == 0
    assert hashed == []


@pytest.mark.parametrize(
    "values",
    [
        {"text_content": "naïve"},
        {"text_content": "\x7f"},
        {"patch_files": ("ü.py",)},
        {"tool_input": {"path": "x.py", "limit": 5}},
        {"tool_input": {"path": None}},
        {"metadata": {"ключ": 1}},
    ],
)
def test_what_the_database_writes_otherwise_is_hashed_again_and_found_whole(values, hashed):
    conversation_id = said(full(PartType.TOOL, **values), full(PartType.TOOL))
    hashed.clear()

    found = parts_match_their_hashes([conversation_id])

    assert found.count == 0
    assert len(hashed) == 1


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.none() | texts, arguments=json_of(texts), metadata=json_of(texts), files=st.lists(texts, max_size=3))
def test_whatever_a_part_holds_it_is_found_whole(db, text, arguments, metadata, files):
    part = NewPart(
        PartType.TOOL, text_content=text, tool_input=arguments, metadata=metadata, patch_files=tuple(files)
    )  # fmt: skip

    conversation_id = said(part)

    assert IntegrityChecker.from_settings().run(conversation_id=conversation_id).is_clean
