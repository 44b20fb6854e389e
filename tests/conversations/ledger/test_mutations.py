"""Whatever a member of a line is made to say, with all hashes made anew: it is refused, or it is a ledger of ours.

Refused with a type and a sentence, and nothing is written; or imported, and then the check finds nothing in it, and it
is exported as the same bytes.
"""

from __future__ import annotations

import copy
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from conversations.errors import Conflict, Invalid
from conversations.ledger.line_shapes import SHAPES
from conversations.models import Conversation
from conversations.types import PART_COLUMNS
from integrity.checker import IntegrityChecker
from tests.conversations.ledger.forging import HOSTILE, Objects, bytes_of, seal_anew
from tests.conversations.ledger.ledgers import exported, imported, objects_in, verified

# What only counting a text again could tell: docs/ledger.md says that the line hashes alone seal it.
UNSEALED = {"token_counts_are_recounts"}


def mutations(ledger: Objects) -> Iterator[tuple[int, tuple[Any, ...], Any]]:
    """Places in the ledger, by line and path, and what to put there: the first and the last line of each type."""
    for kind in (*SHAPES, "part"):
        numbers = [number for number, line in enumerate(ledger) if line["type"] == kind]
        for number in sorted({numbers[0], numbers[-1]}):
            yield from ((number, (name,), value) for name in ledger[number] if name != "line_hash" for value in HOSTILE)
    # Parts differ in what they have; any of them may be given any column.
    number = next(number for number, line in enumerate(ledger) if line.get("parts"))
    yield from ((number, ("parts", 0, name), value) for name in ("ordinal", *PART_COLUMNS) for value in HOSTILE)


def forged(ledger: Objects, number: int, path: tuple[Any, ...], value: Any) -> bytes:
    objects = copy.deepcopy(ledger)
    holder: Any = objects[number]
    for each in path[:-1]:
        holder = holder[each]
    holder[path[-1]] = value
    if "parts" in path:
        in_order = {name: holder.pop(name) for name in ("ordinal", *PART_COLUMNS, "part_hash") if name in holder}
        holder.update(in_order)
    seal_anew(objects)
    return bytes_of(objects)


def refused_or_ours(written: bytes, directory: Path) -> str:
    """What became of it: `found` by the verifier, `refused` by the import, or `ours`."""
    report = verified(written)
    if not report.is_clean:
        assert report.findings[0].detail.isprintable()
        return "found"
    undone = transaction.savepoint()
    before = Conversation.objects.count()
    try:
        [copied] = imported(written, directory).conversations
    except (Invalid, Conflict):
        assert Conversation.objects.count() == before
        return "refused"
    else:
        found = IntegrityChecker.from_settings().run(conversation_id=copied.conversation_id)
        assert {each.code for each in found.broken} <= UNSEALED, found.broken
        again = exported(copied.conversation_id)
        assert again.splitlines()[1:] == written.splitlines()[1:] or objects_in(written)[0]["workspace"] != "default"
        return "ours"
    finally:
        transaction.savepoint_rollback(undone)


def try_all(ledger: Objects, chosen: list[tuple[int, tuple[Any, ...], Any]], directory: Path) -> set[str]:
    became = set()
    for number, path, value in chosen:
        try:
            became.add(refused_or_ours(forged(ledger, number, path, value), directory))
        except Exception as failure:
            failure.add_note(f"{ledger[number]['type']} {path} = {str(value)[:60]!r}")
            raise
    return became


@pytest.mark.parametrize("count", [10, pytest.param(1500, marks=pytest.mark.thorough)])
@pytest.mark.timeout(3600)
def test_a_hostile_value_is_refused_or_imported_as_it_is(db, branched_objects, tmp_path, count):
    # The same ones each time, so that a failure comes from a change.
    chosen = random.Random(count).sample(list(mutations(branched_objects)), count)

    assert "found" in try_all(branched_objects, chosen, tmp_path)


def test_a_claimed_number_of_parts_takes_no_memory(full_objects):
    number = next(number for number, line in enumerate(full_objects) if line["type"] == "message")
    written = forged(full_objects, number, ("chained_parts",), 2**22)

    tracemalloc.start()
    report = verified(written)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert "parts_incomplete" in {finding.code for finding in report.findings}
    assert peak < 32 * 1024**2
