"""Whatever is in a conversation comes out of a ledger as it went in: all of a workspace, chance's, real ones."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from compaction.engine import CompactionEngine
from compaction.policy import CompactionPolicy
from conversations.content import hashing
from conversations.content.lossless_values import MOST_LEVELS
from conversations.formats import READERS, detect
from conversations.ledger.lines import body_in
from conversations.models import ContextItem, Summary
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from tests.conversations.ledger import verifier
from tests.conversations.ledger.ledgers import exported, imported, objects_in, through_a_ledger
from tests.conversations.real_data import conversation_files, needs_data, rows_of
from tests.conversations.strategies import json_of, plain_texts, texts
from tests.factories import a_conversation, a_store, a_workspace, say

SMALL = [
    "cc_ccl_326189cf-5676-4237-8",
    "codex_2025-09-24T20-12-23",
    "tau_airline_3_0",
    "swe_BabyEncryption",
    "locomo_30",
]


def test_all_conversations_of_a_workspace_go_into_one_ledger(db, tmp_path):
    for name in ("b", "a", "\u00e9", "C", "empty"):
        a_conversation(*(["one", "two"] if name != "empty" else []), session_id=name)
    a_conversation("not ours", session_id="d", workspace=a_workspace("another"))

    ledger, again = through_a_ledger(tmp_path)

    assert again == ledger
    names = [each["session_id"] for each in objects_in(ledger) if each["type"] == "conversation"]
    assert names == ["C", "a", "b", "empty", "\u00e9"]


def test_a_summary_that_supersedes_another_comes_along(db, tmp_path):
    conversation_id = a_conversation(*(f"Message {n} about boats. " * 60 for n in range(30))).conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    old, content = Summary.objects.get().as_record(), "They spoke about boats."
    messages = a_store().get_summary_messages(summary_id=old.summary_id)
    sealed = hashing.summary_hash([each.content_hash for each in messages], content).hex()
    newer = {"summary_id": "sum_newer00000000000", "content": content, "supersedes_id": old.summary_id}
    a_store().write_summary(
        summary=replace(old, **newer, summary_hash=sealed),
        message_ids=[each.message_id for each in messages],
        source_ids=[],
        item_tokens=9,
        mark=NewPart(PartType.COMPACTION, is_synthetic=True, is_ignored=True),
    )

    ledger, again = through_a_ledger(tmp_path, conversation_id)

    assert again == ledger
    assert Summary.objects.get(pk="sum_newer00000000000").supersedes_id == old.summary_id
    assert ContextItem.objects.get(summary_id__isnull=False).summary_id == "sum_newer00000000000"


# What a message may hold, at its worst.
moments = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC))
prices = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=9)
parts = st.builds(
    NewPart,
    part_type=st.sampled_from(PartType),
    text_content=st.none() | texts,
    is_ignored=st.none() | st.booleans(),
    tool_call_id=st.none() | texts,
    tool_name=st.none() | texts,
    tool_input=json_of(texts),
    tool_output=st.none() | texts,
    patch_files=st.none() | st.lists(texts, max_size=2).map(tuple),
    step_cost=st.none()
    | prices
    | st.sampled_from([Decimal("0.00"), Decimal("-0.0"), Decimal("1E+3"), Decimal("9" * 40)]),
    step_tokens_in=st.none() | st.integers(-(2**31), 2**31 - 1),
    metadata=json_of(texts),
)
names = st.none() | plain_texts.filter(lambda text: bool(text))
messages = st.builds(
    NewMessage,
    role=st.sampled_from(Role),
    content=texts,
    parts=st.lists(parts, max_size=3).map(tuple),
    author=names,
    created_at=st.none() | moments,
    metadata=st.dictionaries(texts, json_of(texts), max_size=3),
)


@settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    said=st.lists(messages, min_size=1, max_size=4),
    title=names,
    metadata=st.dictionaries(plain_texts, json_of(plain_texts)),
)
def test_whatever_was_said_comes_back(db, tmp_path, said, title, metadata):
    with transaction.atomic():
        conversation_id = a_conversation(session_id="said", title=title, metadata=metadata).conversation_id
        say(conversation_id, *said)
        ledger = exported(conversation_id)

        # Without summaries, runs and files, nothing forbids a copy beside it.
        copy = imported(ledger, tmp_path, session_id="copy").conversations[0]

        verifier.verify(io.BytesIO(ledger))
        assert bodies(exported(copy.conversation_id)) == bodies(ledger)
        assert the_findings(copy.conversation_id) == []
        transaction.set_rollback(True)


def bodies(ledger: bytes) -> list[bytes]:
    """What the lines say, but for the session and the hashes over all of it."""
    return [body_in(line) for line in ledger.replace(b'"session_id":"copy"', b'"session_id":"said"').splitlines()]


def the_findings(conversation_id: int) -> list[tuple[str, str]]:
    report = IntegrityChecker.from_settings().run(conversation_id=conversation_id)
    return [(broken.code, finding.detail) for broken in report.broken for finding in broken.findings]


def test_what_is_nested_as_deeply_as_can_be_stored_comes_back(db, tmp_path):
    conversation_id = a_conversation().conversation_id
    nested: Any = "innermost"
    for _ in range(MOST_LEVELS - 1):
        nested = [nested]
    said = NewMessage(Role.USER, "x", metadata={"deep": nested})
    say(conversation_id, said)

    ledger, again = through_a_ledger(tmp_path, conversation_id)

    assert again == ledger
    assert b"[" * (MOST_LEVELS - 1) + b'"innermost"' in ledger


def the_real(name: str, directory: Path) -> tuple[bytes, bytes]:
    """A real conversation, compacted in small steps, through a ledger."""
    rows = rows_of(next(each for each in conversation_files() if each.name.startswith(name)))
    store, conversation = a_store(), a_conversation(session_id=name)
    read = None
    while batch := list(islice(rows, 500)):
        read = read or READERS[detect(batch[0])]
        store.append_messages(conversation_id=conversation.conversation_id, messages=[read(row) for row in batch])
    engine = CompactionEngine.from_settings(Scope(a_workspace().pk))
    policy = CompactionPolicy(leaf_chunk_tokens=3000, condense_fan_in=3)
    replace(engine, policy=policy).compact(conversation_id=conversation.conversation_id)
    return through_a_ledger(directory, conversation.conversation_id)


@pytest.mark.sampled(1)
@needs_data
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name",
    [
        *SMALL,
        *(pytest.param(file.name.removesuffix(".jsonl.gz"), marks=pytest.mark.slow) for file in conversation_files()),
    ],
)
def test_a_real_conversation_comes_back_byte_for_byte(db, tmp_path, name):
    ledger, again = the_real(name, tmp_path)

    assert again == ledger
    assert objects_in(ledger)[-1]["counts"]["messages"]
    assert IntegrityChecker.from_settings().run().is_clean
