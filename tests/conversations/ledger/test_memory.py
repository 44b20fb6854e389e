"""However long the conversation: exporting, verifying and importing it take no more memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from conversations.ledger.verifying import Verifier, lines_in
from tests.conversations.ledger.ledgers import another_database, the_ledgers
from tests.factories import a_conversation

MEGABYTE = 1024**2


def peak_of(work: Callable[[], object]) -> int:
    """The most bytes that Python held at once for this work."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peaks(count: int, directory: Path) -> dict[str, int]:
    """What each way of a conversation of so many messages takes."""
    conversation_id = a_conversation(
        *(f"Message {n}: the harbour master counts boats. " * 10 for n in range(count)), session_id=f"of {count}"
    ).conversation_id
    path = directory / f"{count}.jsonl"

    def export() -> None:
        with path.open("wb") as file:
            file.writelines(the_ledgers().lines(conversation_id=conversation_id))

    def verify() -> None:
        with path.open("rb") as file, Verifier() as verifier:
            assert verifier.verify(lines_in(file), source="a ledger").is_clean

    taken = {"export": peak_of(export), "verify": peak_of(verify)}
    another_database()
    taken["import"] = peak_of(lambda: the_ledgers().import_file(path))
    return taken


def grown(few: dict[str, int], many: dict[str, int]) -> dict[str, int]:
    return {name: many[name] - few[name] for name in few}


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_four_times_the_messages_take_no_more_memory(db, tmp_path):
    peaks(50, tmp_path)
    few, many = peaks(1_000, tmp_path), peaks(4_000, tmp_path)

    # 3,000 messages more, of 460 characters each: kept, they would be at least that.
    assert {name: growth for name, growth in grown(few, many).items() if growth > MEGABYTE} == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_times_the_messages_take_no_more_memory(db, tmp_path):
    peaks(50, tmp_path)
    few, many = peaks(1_000, tmp_path), peaks(20_000, tmp_path)

    assert {name: growth for name, growth in grown(few, many).items() if growth > 2 * MEGABYTE} == {}
