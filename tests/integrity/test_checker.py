"""A check finds every violation, at the right place, and nothing in an intact database."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conversations.errors import NotFound
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.invariants import INVARIANTS, MOST_FINDINGS
from integrity.types import IntegrityReport, InvariantResult
from tests.factories import a_conversation, a_store, a_workspace
from tests.integrity.breaking import Compacted, a_compacted_conversation, breaking, found, result
from tests.integrity.breaks import BREAKS, names_of

README = Path(__file__).resolve().parents[2] / "integrity" / "README.md"

IN_CONVERSATIONS = {invariant.code for invariant in INVARIANTS if not invariant.of_the_site}


def without_cost(result: InvariantResult) -> InvariantResult:
    return replace(result, milliseconds=0)


@pytest.fixture
def check(conversation: Compacted) -> Callable[[], IntegrityReport]:
    """Checks the broken conversation alone, and asserts that a check of everything finds the same."""

    def check() -> IntegrityReport:
        everything = IntegrityChecker.from_settings().run()
        alone = IntegrityChecker.from_settings().run(conversation_id=conversation.id)
        assert [without_cost(each) for each in everything.invariants if each.code in IN_CONVERSATIONS] == [
            without_cost(each) for each in alone.invariants
        ]
        return alone

    return check


def test_an_untouched_conversation_is_clean(check):
    report = check()

    assert found(report) == {}
    assert report.is_clean
    assert (report.conversations_checked, report.messages_checked) == (1, 40)
    assert IntegrityChecker.from_settings().run().conversations_checked == 2
    assert [result.code for result in report.invariants] == [each.code for each in INVARIANTS if not each.of_the_site]


@pytest.mark.sampled(9)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", BREAKS.values(), ids=BREAKS.keys())
def test_damage_is_found(conversation, check, case):
    case(conversation)
    names = names_of(conversation)

    report = check()

    findings = found(report)
    expected = {code: [id.format(**names) for id in ids] for code, ids in case.finds.items()}
    assert {code: findings.get(code) for code in expected} == expected
    assert not case.is_alone or findings == expected
    first = result(report, next(iter(case.finds))).findings[0]
    assert case.detail.format(**names) in ("", first.detail)


def test_rows_that_point_into_another_conversation_are_found(conversation):
    foreign = a_conversation("hello").conversation_id
    [message] = a_store().list_messages(conversation_id=foreign)
    moved = "UPDATE context_items SET message_id = %s WHERE message_id = %s"
    linked = "INSERT INTO summary_messages (summary_id, message_id, ordinal) VALUES (%s, %s, 9)"
    breaking("DELETE FROM context_items WHERE message_id = %s", message.message_id)
    breaking(moved, message.message_id, conversation.message_ids[30])
    breaking(linked, conversation.late.summary_id, message.message_id)

    findings = found(IntegrityChecker.from_settings().run(conversation_id=conversation.id))

    assert findings["context_points_at_rows"] == ["ordinal_30"]
    assert findings["lineage_stays_in_its_conversation"] == [conversation.late.summary_id]


@pytest.mark.parametrize(
    ("seqs", "gaps"), [((1, 33, 34, 35, 39, 40), ["1 to 1", "33 to 35", "39 to 40"]), (range(1, 41), ["1 to 40"])]
)
def test_removed_messages_in_a_row_are_one_gap(conversation, check, seqs, gaps):
    for table in ("context_items", "summary_messages", "messages"):
        breaking(f"DELETE FROM {table} WHERE message_id = ANY(%s)", [conversation.message_ids[seq] for seq in seqs])

    findings = result(check(), "messages_are_complete").findings

    assert [finding.detail for finding in findings] == [f"messages {gap} are missing" for gap in gaps]


def test_all_findings_are_counted_over_all_batches_and_the_first_are_named(conversation, monkeypatch):
    monkeypatch.setattr("integrity.examination.BATCH_CONVERSATIONS", 1)
    for other in (a_compacted_conversation(), conversation):
        breaking("UPDATE messages SET content = content || '!' WHERE conversation_id = %s", other.id)

    report = IntegrityChecker.from_settings().run()

    contents = result(report, "contents_match_their_hashes")
    assert (contents.count, len(contents.findings)) == (2 * 40, MOST_FINDINGS)
    assert report.conversations_checked == 3


def test_a_check_stays_in_its_workspace(conversation):
    other = a_workspace("another")
    mine = a_conversation("hello", workspace=other)
    breaking("UPDATE messages SET content = 'x' WHERE conversation_id = %s", conversation.id)

    report = IntegrityChecker.from_settings(Scope(other.pk)).run()

    assert report.is_clean
    assert report.conversations_checked == 1
    with pytest.raises(NotFound):
        IntegrityChecker.from_settings(Scope(other.pk)).run(conversation_id=conversation.id)
    assert IntegrityChecker.from_settings(Scope(other.pk)).run(conversation_id=mine.conversation_id).is_clean


def test_every_invariant_is_explained_in_the_readme():
    explained = dict(re.findall(r"^\| `(\w+)` \| (critical|error|warning) \|", README.read_text(), re.M))

    assert explained == {invariant.code: invariant.severity for invariant in INVARIANTS}
    assert len(explained) == len(INVARIANTS)
    assert all(invariant.sentence.endswith(".") for invariant in INVARIANTS)
