"""What a ledger may not say, though every hash in it is right: each has a finding, and is not imported."""

from __future__ import annotations

import copy
import io
import re
from pathlib import Path
from typing import Any

import pytest

from compaction.types import Outcome, Reason
from conversations.ledger import line_shapes
from tests.conversations.ledger import verifier
from tests.conversations.ledger.forging import Forge, Objects, accepts, bytes_of, changed, of, seal_anew
from tests.conversations.ledger.ledgers import verified

PROJECT = Path(__file__).parents[3]


def about_a_span(**values: Any) -> Forge:
    """Of the reference that says where a text stands for a file."""

    return lambda objects: next(each for each in objects if each.get("start_at") is not None).update(values)


ONE, TWO = "sum_1111111111111111", "sum_2222222222222222"


def a_copy_of_a_summary(objects: Objects, **values: Any) -> None:
    """One more summary of the same sources, made instead of the first, behind all others."""
    last = max(number for number, each in enumerate(objects) if each["type"] == "summary")
    objects.insert(last + 1, {**copy.deepcopy(of(objects, "summary")), **values})
    for kind in ("end", "trailer"):
        of(objects, kind)["counts"]["summaries"] += 1
    of(objects, "trailer")["lines"] += 1


def supersede_itself(objects: Objects) -> None:
    first = of(objects, "summary")
    first["supersedes_id"] = first["summary_id"]


def supersede_in_a_circle(objects: Objects) -> None:
    for name, other in ((ONE, TWO), (TWO, ONE)):
        a_copy_of_a_summary(objects, summary_id=name, supersedes_id=other)


def supersede_twice(objects: Objects) -> None:
    for name in (ONE, TWO):
        a_copy_of_a_summary(objects, summary_id=name, supersedes_id=of(objects, "summary")["summary_id"])


def one_source_twice(objects: Objects) -> None:
    first = of(objects, "summary")
    seqs = [*first["source_seqs"], first["source_seqs"][-1]]
    a_copy_of_a_summary(objects, summary_id=ONE, supersedes_id=first["summary_id"], source_seqs=seqs)


def one_key_twice(objects: Objects) -> None:
    for seq in (4, 5):
        of(objects, "message", seq=seq)["idempotency_key"] = "the same"


def changed_before_the_last_message(objects: Objects) -> None:
    of(objects, "end")["updated_at"] = of(objects, "conversation")["created_at"]


def one_run_twice(objects: Objects) -> None:
    runs = [each for each in objects if each["type"] == "run"]
    runs[1]["run_id"] = runs[0]["run_id"]


def the_newest_session(objects: Objects) -> dict[str, Any]:
    return [each for each in objects if each["type"] == "session_summary"][-1]


def leave_out_a_source(objects: Objects) -> None:
    sources = the_newest_session(objects)["sources"]
    assert len(sources) > 2
    del sources[1]


def reach_messages_twice(objects: Objects) -> None:
    """Also what a source was made from, in place of as many messages as it stands for."""
    sources = the_newest_session(objects)["sources"]
    made_from = {each["summary_id"]: each["source_ids"] for each in objects if each["type"] == "summary"}
    sources += next(made_from[each] for each in sources if made_from.get(each))


def supersede_nothing(objects: Objects) -> None:
    the_newest_session(objects)["supersedes_id"] = None


FORGERIES: dict[str, tuple[Forge, str]] = {
    "a surrogate in a file's name": (changed("file", file_name="a\ud800"), "malformed_line"),
    "a name that the API refuses": (changed("file", file_name="x" * 501), "malformed_line"),
    "a surrogate in a file's type": (changed("file", mime_type="text/\udc00"), "malformed_line"),
    "a surrogate in what is told of a file": (changed("file", exploration_summary="\ud800"), "malformed_line"),
    "a surrogate in a summary": (changed("summary", content="\ud800 said"), "malformed_line"),
    "NUL in a summary": (changed("summary", content="a\x00b"), "malformed_line"),
    "a surrogate in the name of a model": (changed("summary", model="\ud800"), "malformed_line"),
    "a surrogate in a summary's quality": (changed("summary", quality={"failures": ["\ud800"]}), "malformed_line"),
    "an outcome that there is not": (changed("run", outcome="triumph"), "malformed_line"),
    "a run at work": (changed("run", outcome="running"), "malformed_line"),
    "a summary that supersedes itself": (supersede_itself, "supersedes_itself"),
    "summaries that supersede each other": (supersede_in_a_circle, "supersedes_itself"),
    "a summary that is superseded twice": (supersede_twice, "superseded_twice"),
    "one source twice": (one_source_twice, "covered_twice"),
    "a field that there is not": (about_a_span(field="content; drop"), "malformed_line"),
    "a part that there is not": (about_a_span(part_ordinal=7), "reference_mismatch"),
    "characters behind the end": (about_a_span(start_at=2**31 - 1), "reference_mismatch"),
    "no characters at all": (about_a_span(length=0), "reference_mismatch"),
    "a place without a length": (about_a_span(length=None), "reference_mismatch"),
    "a name of no part": (changed("reference", part_ordinal=None, start_at=None, length=None), "reference_mismatch"),
    "a change before the last message": (changed_before_the_last_message, "time_goes_back"),
    "an idempotency key twice": (one_key_twice, "duplicate_idempotency_key"),
    "a run twice": (one_run_twice, "duplicate_run_id"),
    "a run that took out more than there was": (changed("run", tokens_after=-1), "run_does_not_add_up"),
    "a session summary of another project": (changed("session_summary", project="another"), "project_mismatch"),
    "a session summary that leaves messages out": (leave_out_a_source, "summary_range_mismatch"),
    "a session summary that reaches messages twice": (reach_messages_twice, "summary_range_mismatch"),
    "a session summary beside another": (supersede_nothing, "superseded_mismatch"),
    "a session summary that is erased and yet there": (changed("session_summary", erased=True), "erased_and_yet_there"),
    "a session summary of nothing": (changed("session_summary", sources=[]), "unknown_source"),
    "a session summary of what is not there": (changed("session_summary", sources=[999]), "unknown_source"),
    "a session summary with a source twice": (changed("session_summary", sources=[1, 1]), "covered_twice"),
    "a conversation that is its own parent": (
        changed("end", parent_session_id="everything", parent_link="fork"),
        "parent_mismatch",
    ),
    "a link to no parent": (changed("end", parent_link="fork"), "parent_mismatch"),
    "a link that there is not": (changed("end", parent_session_id="x", parent_link="twin"), "malformed_line"),
    "a run that put tokens in": (changed("run", tokens_before=1, tokens_after=2), "run_does_not_add_up"),
}
# What docs/ledger.md has no rule for: a stranger cannot know which words and characters our database takes.
OURS_ALONE = {"malformed_line"}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_a_ledger_cannot_say_has_a_finding_though_every_hash_is_right(objects, forgery):
    forge, code = FORGERIES[forgery]
    forge(objects)
    seal_anew(objects)

    report = verified(bytes_of(objects))

    assert code in report.by_code, report.findings
    assert not {"line_hash_mismatch", "summary_hash_mismatch", "chain_broken"} & report.by_code.keys()
    assert code in OURS_ALONE or not accepts(bytes_of(objects))


def test_one_conversation_twice_in_a_ledger_is_found(objects):
    header, conversation, trailer = objects[0], objects[1:-1], objects[-1]
    twice = [header, *conversation, *copy.deepcopy(conversation), trailer]

    assert "unexpected_line" in verified(bytes_of(twice)).by_code


def test_sealed_again_and_unchanged_it_is_the_same_ledger(full_ledger, full_objects, objects):
    seal_anew(objects)

    assert (objects, bytes_of(objects)) == (full_objects, full_ledger)
    assert verifier.verify(io.BytesIO(full_ledger)) == objects[-1]["line_hash"]


def test_the_words_of_runs_are_those_of_compaction():
    assert set(line_shapes.REASONS) == {each.value for each in Reason}
    assert set(line_shapes.OUTCOMES) == {each.value for each in Outcome} - {Outcome.RUNNING.value}


def test_every_code_of_the_verifier_is_in_the_documentation():
    told = (PROJECT / "docs" / "ledger.md").read_text()
    sources = [PROJECT / "conversations/ledger/verifying.py", *(PROJECT / "conversations/ledger").glob("*_checks.py")]
    codes = {
        code
        for file in sources
        for code in re.findall(
            r'(?:_add|\.add|require)\((?:[^"()]|\([^()]*\))*?"([a-z]+(?:_[a-z]+)+)"', file.read_text()
        )
    }

    assert len(codes) > 20
    assert {code for code in codes if f"`{code}`" not in told} == set()


def test_the_code_of_the_documentation_computes_every_hash(full_objects):
    page, shown = (PROJECT / "docs" / "ledger.md").read_text(), {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.S | re.M):
        exec(code, shown)

    before, seen = b"", {}
    for line in (each for each in full_objects if each["type"] in ("message", "summary", "session_summary")):
        if line["type"] == "message":
            names = ("content_hash", "metadata_hash", "entry_hash", "record_hash", "chain_hash")
            if not line["erased"]:
                hashes = [value and value.hex() for value in shown["hashes_of"](line, before)]
                assert hashes == [line[name] for name in names]
                assert [shown["part_hash"](part).hex() for part in line["parts"]] == [
                    part["part_hash"] for part in line["parts"]
                ]
            assert shown["event_id"](line) == line["event_id"]
            before, seen[line["seq"]] = shown["chain_hash"](line, before), line["content_hash"]
            assert before.hex() == line["chain_hash"]
        else:
            sources = line.get("sources") or line["source_seqs"] + line["source_ids"]
            if not line["erased"]:
                assert (
                    shown["summary_hash"]([seen[each] for each in sources], line["content"]).hex()
                    == (line["summary_hash"])
                )
            seen[line["summary_id"]] = line["summary_hash"]
    assert len(seen) > 20
