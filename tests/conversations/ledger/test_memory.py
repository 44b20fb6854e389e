"""However long the conversation: exporting, verifying and importing it take no more memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

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
        with path.open("rb") as file:
            assert the_ledgers().verify_file(file, name="a ledger").is_clean

    taken = {"export": peak_of(export), "verify": peak_of(verify)}
    another_database()
    taken["import"] = peak_of(lambda: the_ledgers().import_file(path))
    return taken


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("count", "most"),
    [
        # 3,000 messages more, of 460 characters each: kept, they would be at least that.
        pytest.param(4_000, MEGABYTE, marks=pytest.mark.thorough),
        pytest.param(20_000, 2 * MEGABYTE, marks=pytest.mark.slow),
    ],
)
def test_many_more_messages_take_no_more_memory(db, tmp_path, count, most):
    peaks(50, tmp_path)
    few, many = peaks(1_000, tmp_path), peaks(count, tmp_path)

    assert {name: many[name] - few[name] for name in few if many[name] - few[name] > most} == {}
