"""Whoever touches a ledger is found out: by `lcm ledger verify`, and by a verifier written from docs/ledger.md alone.

Each tampering is tried twice: as somebody leaves it who knows no better, and with all line hashes made anew.
"""

from __future__ import annotations

import copy
import json
import operator
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.ledger import verifier
from tests.conversations.ledger.forging import Forge, Objects, accepts, bytes_of, changed, of
from tests.conversations.ledger.ledgers import objects_in, verified

ZEROS = "0" * 64


def with_part(objects: Objects, part_type: str) -> dict[str, Any]:
    parts = (part for each in objects if each["type"] == "message" for part in each["parts"])
    return next(part for part in parts if part["part_type"] == part_type)


def dropped(kind: str, place: int = 0) -> Forge:
    return lambda objects: objects.remove([each for each in objects if each["type"] == kind][place])


def a_message(**values: Any) -> Forge:
    return lambda objects: of(objects, "message", seq=5).update(values)


def a_part(part_type: str, **values: Any) -> Forge:
    return lambda objects: with_part(objects, part_type).update(values)


def swap_seqs(objects: Objects) -> None:
    first, second = of(objects, "message", seq=7), of(objects, "message", seq=8)
    first["seq"], second["seq"] = 8, 7


def swap_messages(objects: Objects) -> None:
    first, second = (objects.index(of(objects, "message", seq=seq)) for seq in (7, 8))
    objects[first], objects[second] = objects[second], objects[first]


def repeat_a_message(objects: Objects) -> None:
    objects.insert(9, copy.deepcopy(objects[8]))


def cut_the_last_messages(objects: Objects) -> None:
    newest = [each for each in objects if each["type"] == "message"][-3:]
    objects[:] = [each for each in objects if each not in newest]


def reparent(objects: Objects) -> None:
    sources = of(objects, "summary", kind="condensed")["source_ids"]
    leaves = [each["summary_id"] for each in objects if each["type"] == "summary" and each["depth"] == 0]
    sources[0] = next(each for each in leaves if each not in sources)


def make_a_cycle(objects: Objects) -> None:
    summary = of(objects, "summary", kind="condensed")
    of(objects, "summary", summary_id=summary["source_ids"][0])["source_ids"] = [summary["summary_id"]]


def claim_an_unknown_source(objects: Objects) -> None:
    of(objects, "summary")["source_seqs"][-1] = 999


def put_in_a_message(objects: Objects) -> None:
    """As a forger would who shifts all that is behind it."""
    forged = copy.deepcopy(of(objects, "message", seq=5)) | {"content": "I never said this."}
    objects.insert(objects.index(of(objects, "message", seq=5)), forged)
    for seq, each in enumerate((each for each in objects if each["type"] == "message"), start=1):
        each["seq"] = seq


def reorder_metadata(objects: Objects) -> None:
    line = next(each for each in objects if each["type"] == "message" and len(each["metadata"] or {}) > 1)
    line["metadata"] = dict(reversed(line["metadata"].items()))


def reorder_a_tool_input(objects: Objects) -> None:
    part = with_part(objects, "tool")
    part["tool_input"] = dict(reversed(part["tool_input"].items()))
    assert len(part["tool_input"]) > 1


def make_the_record_anew(objects: Objects) -> None:
    line = of(objects, "message", seq=5)
    line["token_counter"] = "abacus"
    line["record_hash"] = verifier.record_hash(line)


def with_files(objects: Objects) -> dict[str, Any]:
    return next(each for each in objects if each["type"] == "message" and each["files"])


def change_an_entry(place: int, value: object) -> Forge:
    return lambda objects: operator.setitem(with_files(objects)["files"][0], place, value)


def put_in_a_file(objects: Objects) -> None:
    of(objects, "message", seq=5)["files"] = copy.deepcopy(with_files(objects)["files"])


def leave_out_a_file_and_its_reference(objects: Objects) -> None:
    with_files(objects)["files"].pop()
    drop_a_reference(objects)


def drop_a_reference(objects: Objects) -> None:
    del objects[max(place for place, each in enumerate(objects) if each["type"] == "reference")]
    of(objects, "end")["counts"]["references"] -= 1
    objects[-1]["counts"]["references"] -= 1
    objects[-1]["lines"] -= 1


def another_file_in_a_reference(objects: Objects) -> None:
    reference = of(objects, "reference")
    reference["file_id"] = next(
        each["file_id"] for each in objects if each["type"] == "file" and each["file_id"] != reference["file_id"]
    )


def another_file_under_its_name(objects: Objects) -> None:
    """Another text with a hash that fits, under the id that the message names."""
    file_id = of(objects, "reference")["file_id"]
    of(objects, "file", file_id=file_id).update(content_hash=verifier.sha("other"), byte_size=5)
    of(objects, "bytes", file_id=file_id)["base64"] = "b3RoZXI="


TAMPERINGS: dict[str, tuple[Forge, str]] = {
    "content": (a_message(content="Something else."), "content_hash_mismatch"),
    "content and its hash": (a_message(content="x", content_hash=verifier.sha("x")), "entry_hash_mismatch"),
    "metadata": (a_message(metadata={"a": 1}), "metadata_hash_mismatch"),
    "metadata and their hash": (a_message(metadata={"a": 1}, metadata_hash=verifier.sha('{"a":1}')), "chain_broken"),
    "role": (a_message(role="system", actor="system"), "entry_hash_mismatch"),
    "author": (a_message(author="eve", actor="eve"), "entry_hash_mismatch"),
    "when it was said": (a_message(created_at="2020-01-01T00:00:00.000000Z"), "chain_broken"),
    "when it was recorded": (a_message(recorded_at="2020-01-01T00:00:00.000000Z"), "time_goes_back"),
    "event_id": (a_message(event_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"), "event_id_mismatch"),
    "entry_hash": (a_message(entry_hash=ZEROS), "entry_hash_mismatch"),
    "chain_hash": (a_message(chain_hash=ZEROS), "chain_broken"),
    "token_count": (a_message(token_count=1), "summary_range_mismatch"),
    "a token_count that is sealed": (a_message(token_count=1), "record_hash_mismatch"),
    "token_counter": (a_message(token_counter="abacus"), "record_hash_mismatch"),
    "an idempotency key put in": (a_message(idempotency_key="x"), "record_hash_mismatch"),
    "the order of metadata": (reorder_metadata, "record_hash_mismatch"),
    "the order of a tool's input": (reorder_a_tool_input, "record_hash_mismatch"),
    "record_hash": (a_message(record_hash=ZEROS), "record_hash_mismatch"),
    "record_hash left out": (a_message(record_hash=None), "chain_broken"),
    "record_hash made anew": (make_the_record_anew, "chain_broken"),
    "a file that a message needs": (change_an_entry(0, "file_0000000000000000"), "reference_mismatch"),
    "the hash of a file that a message needs": (change_an_entry(1, ZEROS), "reference_mismatch"),
    "the place of a file": (change_an_entry(4, 1), "reference_mismatch"),
    "the length of a file's element": (change_an_entry(5, 20), "reference_mismatch"),
    "a file put in": (put_in_a_file, "reference_mismatch"),
    "a file left out": (lambda objects: with_files(objects)["files"].pop(), "reference_mismatch"),
    "a file left out with its reference": (leave_out_a_file_and_its_reference, "record_hash_mismatch"),
    "a reference's file": (another_file_in_a_reference, "reference_mismatch"),
    "a reference's message": (changed("reference", seq=5), "reference_mismatch"),
    "a reference's place": (changed("reference", start_at=1), "reference_mismatch"),
    "a file's hash and its bytes": (another_file_under_its_name, "reference_mismatch"),
    "a dropped reference that is not counted": (drop_a_reference, "reference_mismatch"),
    "a text part": (a_part("reasoning", text_content="I was not thinking."), "part_hash_mismatch"),
    "a tool's input": (a_part("tool", tool_input={"path": "other"}), "part_hash_mismatch"),
    "a price": (a_part("step_finish", step_cost="0.01"), "part_hash_mismatch"),
    "a part's hash": (a_part("patch", part_hash=ZEROS), "part_hash_mismatch"),
    "a later part": (changed("part", text_content="another"), "part_hash_mismatch"),
    "a summary's text": (changed("summary", content="They agreed to pay."), "summary_hash_mismatch"),
    "a summary's hash": (changed("summary", summary_hash=ZEROS), "summary_hash_mismatch"),
    "a summary's parent": (reparent, "summary_hash_mismatch"),
    "a cycle": (make_a_cycle, "unknown_source"),
    "the order of sources": (lambda objects: of(objects, "summary")["source_seqs"].reverse(), "summary_hash_mismatch"),
    "a source less": (lambda objects: of(objects, "summary")["source_seqs"].pop(), "summary_hash_mismatch"),
    "an unknown source": (claim_an_unknown_source, "unknown_source"),
    "a dropped message": (dropped("message", 4), "seq_gap"),
    "a dropped part": (dropped("part"), "count_mismatch"),
    "a dropped summary": (dropped("summary", -1), "count_mismatch"),
    "a session summary's text": (changed("session_summary", content="They agreed to pay."), "summary_hash_mismatch"),
    "a session summary's hash": (changed("session_summary", summary_hash=ZEROS), "summary_hash_mismatch"),
    "a session summary's sources": (
        lambda objects: of(objects, "session_summary")["sources"].reverse(),
        "summary_hash_mismatch",
    ),
    "a project": (changed("end", project="another"), "project_mismatch"),
    "a dropped session summary": (dropped("session_summary", -1), "count_mismatch"),
    "a dropped run": (dropped("run"), "count_mismatch"),
    "a dropped boundary": (dropped("boundary"), "count_mismatch"),
    "a dropped reference": (dropped("reference"), "count_mismatch"),
    "a dropped file": (dropped("file"), "bytes_out_of_place"),
    "a file's dropped bytes": (dropped("bytes"), "file_hash_mismatch"),
    "a file's bytes": (changed("bytes", base64="YSxiCg=="), "file_hash_mismatch"),
    "a file's hash": (changed("file", content_hash=ZEROS), "file_hash_mismatch"),
    "a missing file": (changed("file", bytes="missing"), "file_missing"),
    "swapped seqs": (swap_seqs, "seq_gap"),
    "swapped messages": (swap_messages, "seq_gap"),
    "a repeated message": (repeat_a_message, "duplicate_event_id"),
    "a message put in": (put_in_a_message, "content_hash_mismatch"),
    "the last messages cut off": (cut_the_last_messages, "chain_head_mismatch"),
    "the number of messages": (changed("end", message_count=3), "seq_gap"),
    "the head of the chain": (changed("end", chain_head=ZEROS), "chain_head_mismatch"),
    "a counter": (changed("end", total_tokens=1), "count_mismatch"),
    "the number of lines": (changed("trailer", lines=3), "count_mismatch"),
    "a dropped end": (dropped("end"), "unexpected_line"),
    "a dropped trailer": (dropped("trailer"), "truncated"),
}


def test_both_verifiers_accept_what_was_exported(full_ledger):
    report = verified(full_ledger)

    assert (report.findings, report.is_clean, report.lines) == ((), True, len(full_ledger.splitlines()))
    assert vars(report.counts) == objects_in(full_ledger)[-1]["counts"]
    # Something of every sort is in it.
    assert min(vars(report.counts).values()) >= 1
    assert accepts(full_ledger)


def test_the_verifier_is_short_and_imports_nothing_of_ours():
    lines = Path(verifier.__file__).read_text().splitlines()
    modules = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}

    assert len(lines) <= 190
    assert modules <= sys.stdlib_module_names


def test_the_verifier_run_as_a_program_tells_a_whole_ledger_from_an_altered_one(full_ledger, tmp_path):
    (tmp_path / "whole.jsonl").write_bytes(full_ledger)
    (tmp_path / "altered.jsonl").write_bytes(full_ledger.replace(b'"role":"user"', b'"role":"tool"', 1))

    def verdict(*arguments: str) -> tuple[int, str, str]:
        ran = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        return ran.returncode, ran.stdout, ran.stderr

    program = verifier.__file__
    held, said, _ = verdict(program, "whole.jsonl")
    altered, nothing, why = verdict(program, "altered.jsonl")

    assert (held, objects_in(full_ledger)[-1]["line_hash"] in said) == (0, True)
    assert (altered, nothing, why.startswith("Not everything holds")) == (1, "", True)
    # Who names no file, or has Python pass over assertions, is not told that anything holds.
    assert [verdict(program)[:2], verdict("-O", program, "altered.jsonl")[:2]] == [(1, ""), (1, "")]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_tampering_shows_by_the_line_hashes_and_even_if_they_were_made_anew(full_ledger, objects, tampering):
    tamper, code = TAMPERINGS[tampering]
    tamper(objects)
    left = b"".join(json.dumps(each, separators=(",", ":")).encode("ascii") + b"\n" for each in objects)
    forged = bytes_of(objects)
    assert forged != full_ledger

    report = verified(forged)

    assert code in report.by_code, report.findings
    assert "line_hash_mismatch" not in report.by_code and "malformed_line" not in report.by_code
    # What is only cut off at the end has no altered line.
    assert tampering == "a dropped trailer" or "line_hash_mismatch" in verified(left).by_code
    assert not accepts(forged) and not accepts(left)


@pytest.mark.thorough
def test_every_flipped_bit_shows(full_ledger):
    chance = random.Random(5)
    for place in chance.sample(range(len(full_ledger)), 60):
        forged = bytearray(full_ledger)
        forged[place] ^= 1 << chance.randrange(8)

        assert not verified(bytes(forged)).is_clean, place
        assert not accepts(bytes(forged)), place


def test_every_way_to_cut_the_end_off_shows(full_ledger):
    lines = full_ledger.splitlines(keepends=True)
    cuts = [
        b"",
        *(b"".join(lines[:length]) for length in range(1, len(lines), 19)),
        full_ledger[:-1],
        full_ledger[:-100],
    ]

    for cut in cuts:
        assert "truncated" in verified(cut).by_code
        assert not accepts(cut)


def test_lines_that_belong_elsewhere_show(full_ledger):
    lines = full_ledger.splitlines(keepends=True)
    moved = [*lines[:3], lines[4], lines[3], *lines[5:]]

    for forged in (moved, [*lines, *lines], lines[1:], [*lines[:5], *lines[4:]]):
        report = verified(b"".join(forged))

        assert {"line_hash_mismatch", "unexpected_line"} & report.by_code.keys()


def test_findings_name_the_line(full_ledger):
    lines = full_ledger.splitlines(keepends=True)
    lines[6] = lines[6].replace(b"harbour", b"Harbour", 1)

    report = verified(b"".join(lines))

    assert {(finding.line, finding.code) for finding in report.findings} == {
        (7, "line_hash_mismatch"),
        (7, "content_hash_mismatch"),
    }


@pytest.mark.parametrize(
    "garbage",
    [
        b"[]\n",
        b"{}\n",
        b"\xff\xfe\n",
        b'{"type":"message"}\n',
        b'{"type":["x"],"line_hash":"x"}\n',
        b'{"type":"header","line_hash":1e999}\n',
        b"[" * 100_000 + b"\n",
        b'{"type":"header","line_hash":"' + b"9" * 5000 + b'","x":' + b"9" * 5000 + b"}\n",
        b"\n\n\n",
    ],
)
def test_what_is_no_ledger_at_all_is_said_to_be_none(garbage):
    report = verified(garbage)

    assert "malformed_line" in report.by_code
    assert not accepts(garbage)
