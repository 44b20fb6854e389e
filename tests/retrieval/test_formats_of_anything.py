"""Whatever is stored, each API is given what it takes: of chance, and of real conversations at any budget."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.engine import CompactionEngine
from conversations.formats import transcript_of
from conversations.formats.neutral import from_neutral
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from retrieval.assembler import ContextAssembler
from tests.conversations.real_data import DATA, conversation_files, needs_data, rows_of
from tests.factories import a_conversation, a_workspace, say
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("format", CHECKS)
@given(messages=st.lists(_messages, max_size=12))
def test_whatever_was_stored_the_vendor_takes_it(format, messages):
    context = shown(format, *messages)

    assert {item_id for source in context.sources for item_id in source} <= {
        f"msg_{seq}" for seq in range(1, len(messages) + 1)
    }


BUDGETS = (500, 2000, 8000, 32_000, 200_000)
# One of each sort: with system messages, results without calls, ids used again, images, another's compaction.
FEW = ("swe_flash", "tau_airline_2_1", "cc_ccl_4379d1bf-ccb1-414e-a", "cc_spotter_4d5611e5-241a-462a-8")


def assembled_by_all(messages: Sequence[NewMessage]) -> None:
    """Store a conversation, assemble it whole and compacted, and have each answer checked."""
    conversation_id = a_conversation(overrides={"leaf_chunk_tokens": 4000, "condense_fan_in": 3}).conversation_id
    for start in range(0, len(messages), 1000):
        say(conversation_id, *messages[start : start + 1000])
    assembler = ContextAssembler.from_settings(Scope(a_workspace().pk))
    for _ in ("whole", "compacted"):
        for budget in BUDGETS:
            neutral = assembler.assemble(conversation_id=conversation_id, budget=budget)
            for format, check in CHECKS.items():
                context = assembler.assemble(conversation_id=conversation_id, budget=budget, format=format)

                check(context)
                assert context.total_tokens == neutral.total_tokens
                told = {item_id for source in context.sources for item_id in source}
                dropped = {item_id for repair in context.repairs for item_id in repair.item_ids}
                system = {item.id for item in neutral.items if item.role == "system" and format == "anthropic"}
                assert told | dropped | system >= {item.id for item in neutral.items}
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)


@pytest.mark.sampled(1)
@needs_data
@pytest.mark.django_db
@pytest.mark.parametrize("name", FEW)
def test_the_vendors_take_a_few_real_conversations(name):
    files = [file for file in conversation_files() if file.name.startswith(name)]

    for file in files:
        assembled_by_all([from_neutral(row) for row in rows_of(file)])

    assert files


@pytest.mark.sampled(1)
@needs_data
@pytest.mark.django_db
@pytest.mark.parametrize("name", ["claude_code_ccl__7acd37a8", "codex_agentcmd__rollout-2025-09-25", "pi__large"])
def test_the_vendors_take_what_agents_wrote_down_themselves(name):
    [file] = (DATA / "originals").glob(f"{name}*.jsonl.gz")
    lines = [(transcript, row) for row in rows_of(file) if (transcript := transcript_of(row))]
    messages = [message for transcript, row in lines if (message := transcript.message_of(row))][:120]

    assembled_by_all(messages)

    assert len(messages) > 50


@pytest.mark.slow
@needs_data
@pytest.mark.django_db
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", conversation_files(), ids=lambda file: file.name.removesuffix(".jsonl.gz"))
def test_the_vendors_take_every_real_conversation(file):
    assembled_by_all([from_neutral(row) for row in rows_of(file)])
