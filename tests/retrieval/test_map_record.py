"""The record of map runs: exported, verified from the file alone, and refused where anything was changed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import override_settings

from conversations.errors import NotFound
from conversations.scope import Scope
from retrieval.map.event_log import MapRecord, verify_events
from retrieval.map.models import MapEvent
from tests.factories import a_workspace
from tests.maps import a_map_run, completed

pytestmark = pytest.mark.django_db

Lines = list[dict[str, Any]]


def exported(run_id: str | None = None) -> bytes:
    file = io.BytesIO()
    MapRecord.from_settings(Scope(a_workspace().pk)).export(file, run_id=run_id)
    return file.getvalue()


def verified(content: bytes, **options: Any) -> Any:
    return verify_events(io.BytesIO(content), name="map.events.jsonl", **options)


def written(lines: Lines) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.fixture(scope="module")
def record(module_rows: None, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Two runs with everything done, their events in one file."""
    with override_settings(MEDIA_ROOT=tmp_path_factory.mktemp("files")):
        for _ in range(2):
            completed(a_map_run(items=3))
    return exported()


def test_an_export_verifies_from_the_file_alone(record):
    report = verified(record)

    assert (report.is_clean, report.runs, report.lines) == (True, 2, len(record.splitlines()))
    assert report.heads == {
        run_id: bytes(MapEvent.objects.filter(run_id=run_id).latest("seq").hash).hex() for run_id in report.heads
    }


def test_an_export_names_every_item_with_the_hashes_of_input_and_output(record):
    lines = [json.loads(line) for line in record.splitlines()]

    finished = [line for line in lines if line["event"] == "completed"]
    assert sorted(line["position"] for line in finished) == [1, 1, 2, 2, 3, 3]
    assert all(len(line["input_hash"]) == len(line["output_hash"]) == 64 for line in finished)


def _changed(name: str, value: Any) -> Callable[[Lines], Lines]:
    return lambda lines: [*lines[:3], {**lines[3], name: value}, *lines[4:]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (_changed("actor", "somebody else"), {"hash_differs"}),
        (_changed("output_hash", "00" * 32), {"hash_differs"}),
        (_changed("details", {"n": 1}), {"hash_differs"}),
        (_changed("at", "2020-01-01T00:00:00.000000Z"), {"hash_differs"}),
        (_changed("hash", "00" * 32), {"hash_differs", "chain_differs"}),
        (_changed("at", "yesterday"), {"unreadable", "seq_differs"}),
        (lambda lines: [*lines[:2], *lines[3:]], {"seq_differs"}),
        (lambda lines: lines[1:], {"seq_differs"}),
        (lambda lines: [lines[1], lines[0], *lines[2:]], {"seq_differs"}),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], {"seq_differs"}),
    ],
    ids=["actor", "output", "details", "time", "hash", "no time", "removed", "first removed", "swapped", "doubled"],
)
def test_whatever_is_changed_in_the_file_is_found(record, change, codes):
    lines = [json.loads(line) for line in record.splitlines()]

    report = verified(written(change(lines)))

    assert not report.is_clean
    assert set(report.by_code) >= codes


def test_removed_newest_events_are_found_by_a_hash_that_was_kept(record):
    [head, *_] = verified(record).heads.values()
    shorter = b"".join(line for line in record.splitlines(keepends=True) if head.encode() not in line)

    assert verified(shorter).is_clean
    assert verified(record, expected=[head]).is_clean
    assert verified(shorter, expected=[head]).by_code == {"expected_missing": 1}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("at", "0001-01-01T00:00:00+14:00"), ("seq", "4"), ("seq", True), ("position", [1]), ("position", 1.0),
        ("hash", ["00" * 32]), ("event", {}), ("run_id", 7),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_found_and_never_an_error(record, name, value):
    report = verified(written(_changed(name, value)([json.loads(line) for line in record.splitlines()])))

    assert set(report.by_code) == {"unreadable", "seq_differs"}


def test_garbage_is_counted_and_never_an_error():
    report = verified(b"not JSON\n[]\n{}\n\xff\n" * 10)

    assert (report.is_clean, report.by_code, len(report.findings)) == (False, {"unreadable": 40}, 20)


def test_events_are_listed_in_order_by_run_and_only_in_their_workspace():
    run = completed(a_map_run(items=2))
    service = MapRecord.from_settings(Scope(a_workspace().pk))

    events = service.list_events(run_id=run.run_id, limit=2)
    rest = service.list_events(run_id=run.run_id, after_seq=events[-1].seq)

    assert events[0].event == "submitted"
    assert rest and [each.seq for each in (*events, *rest)] == list(range(1, 3 + len(rest)))
    assert {each.run_id for each in (*events, *rest)} == {run.run_id}
    stranger = MapRecord.from_settings(Scope(a_workspace("another").pk))
    with pytest.raises(NotFound):
        stranger.list_events(run_id=run.run_id)
    assert stranger.export(io.BytesIO()).runs == 0
