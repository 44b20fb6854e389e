"""Whatever is stored, each API is given what it takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.types import NewMessage, NewPart, PartType, Role
from tests.retrieval.showing import PNG, shown
from tests.retrieval.vendors import CHECKS

SIGNED = {"anthropic": {"add": {"signature": "EqQB"}}}

_texts = st.one_of(st.sampled_from(["", " ", "word", "\n", "\x00", "\ud800", "[x]"]), st.text(max_size=5))
_maybe = st.one_of(st.none(), _texts)
_ids = st.one_of(st.none(), st.sampled_from(["a", "b", "a b", "", "é" * 70, "\ud800"]))
_inputs = st.one_of(
    st.none(), _texts, st.dictionaries(_texts, _texts, max_size=2), st.lists(st.integers(), max_size=2), st.booleans()
)
_parts = st.builds(
    NewPart,
    part_type=st.sampled_from([*PartType, *([PartType.TOOL] * 20), *([PartType.REASONING] * 8)]),
    text_content=_maybe,
    tool_call_id=_ids,
    tool_name=_ids,
    tool_input=_inputs,
    tool_output=_maybe,
    tool_error=_maybe,
    file_name=_maybe,
    file_mime=st.sampled_from([None, "image/png", "application/pdf", "audio/wav", "x"]),
    file_url=st.sampled_from(
        [None, PNG, "https://x.example/a.png", "https://x.example/\ud800", "data:audio/wav;base64,AAAA", "data:,x"]
    ),
    patch_files=st.sampled_from([None, ("a.py",)]),
    subtask_prompt=_maybe,
    metadata=st.sampled_from(
        [None, {"openai_chat": {"add": {"type": "custom"}}}, {"openai_chat": 1}, [1], SIGNED, SIGNED]
    ),
)
_messages = st.builds(
    NewMessage,
    role=st.sampled_from(Role),
    content=_maybe,
    parts=st.lists(_parts, max_size=4).map(tuple),
    author=st.sampled_from([None, "ada", "a b", "\ud800"]),
)


@pytest.mark.parametrize("format", CHECKS)
@given(messages=st.lists(_messages, max_size=12))
def test_whatever_was_stored_the_vendor_takes_it(format, messages):
    context = shown(format, *messages)

    assert {item_id for source in context.sources for item_id in source} <= {
        f"msg_{seq}" for seq in range(1, len(messages) + 1)
    }
