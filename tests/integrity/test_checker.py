"""A check finds every violation, at the right place, and nothing in an intact database."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from conversations.errors import NotFound
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.invariants import INVARIANTS, MOST_FINDINGS
from integrity.types import IntegrityReport, InvariantResult, Severity
from tests.factories import a_conversation, a_store, a_workspace
from tests.integrity.breaking import Compacted, a_compacted_conversation, breaking, forging, found, result, without

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


@dataclass(frozen=True)
class Break:
    """Statements past the triggers, and what a check then finds.

    `{m30}` is the id of message 30, `{top}`, `{late}` and `{leaf0}` are summaries, `{id}` is the conversation.
    """

    statements: str | tuple[str, ...]
    finds: dict[str, list[str]]
    # Other findings may follow from the same damage.
    among_others: bool = False
    # The constraint, and its table, that would refuse the statements.
    dropped: tuple[str, str] | None = None
    # A table whose row seals are computed again, as a forger would.
    sealed: str = ""
    detail: str = ""


MESSAGE_30 = ["msg_{m30}"]
BREAKS = {
    "a summary without a source": Break(
        "DELETE FROM summary_messages WHERE summary_id = '{late}'",
        {"summaries_have_sources": ["{late}"]},
        among_others=True,
    ),
    "a context item that points at nothing": Break(
        "UPDATE context_items SET message_id = 10^12 WHERE message_id = {m30}",
        {"context_points_at_rows": ["ordinal_30"]},
        among_others=True,
        detail="points at msg_1000000000000, which does not exist",
    ),
    "a context item of the wrong type": Break(
        "UPDATE context_items SET item_type = 'summary' WHERE message_id = {m30}",
        {"context_points_at_rows": ["ordinal_30"]},
        dropped=("context_items_check", "context_items"),
    ),
    "two context items with one ordinal": Break(
        "UPDATE context_items SET ordinal = 31 WHERE message_id = {m30}",
        {"ordinals_are_unique": ["ordinal_31"], "context_is_what_lineage_says": MESSAGE_30},
        dropped=("context_items_pkey", "context_items"),
    ),
    "two messages with one seq": Break(
        "UPDATE messages SET seq = 31 WHERE message_id = {m30}",
        {"ordinals_are_unique": ["seq_31"], "messages_are_complete": ["seq_30"]},
        among_others=True,
        dropped=("messages_conversation_id_seq_key", "messages"),
    ),
    "two parts with one ordinal": Break(
        "INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, part_hash)"
        " SELECT 'part_x', message_id, session_id, 'text', 0, sha256('x') FROM message_parts WHERE message_id = {m39}",
        {"ordinals_are_unique": ["msg_{m39}"], "parts_match_their_hashes": ["part_x"]},
        among_others=True,
        dropped=("message_parts_message_id_ordinal_key", "message_parts"),
    ),
    "two source messages with one ordinal": Break(
        "UPDATE summary_messages SET ordinal = 1 WHERE summary_id = '{leaf0}'",
        {"ordinals_are_unique": ["{leaf0}"]},
        among_others=True,
    ),
    "two source summaries with one ordinal": Break(
        "UPDATE summary_parents SET ordinal = 1 WHERE summary_id = '{top}'",
        {"ordinals_are_unique": ["{top}"]},
        among_others=True,
    ),
    "a removed message": Break(
        ("DELETE FROM context_items WHERE message_id = {m30}", "DELETE FROM messages WHERE message_id = {m30}"),
        {"messages_are_complete": ["seq_30"], "chains_are_unbroken": ["msg_{m31}"]},
        among_others=True,
    ),
    "a removed part with a later one in its place": Break(
        (
            "INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, part_hash)"
            " SELECT 'part_last', {m37}, 's', 'text', 1, sha256('x')",
            "DELETE FROM message_parts WHERE message_id = {m37} AND ordinal = 0",
        ),
        {"messages_are_complete": ["msg_{m37}"], "entries_match_their_hashes": ["msg_{m37}"]},
        among_others=True,
    ),
    "a removed part that was added after the append": Break(
        (
            "INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, part_hash)"
            " SELECT 'part_last', {m28}, 's', 'text', 1, sha256('x')",
            "DELETE FROM message_parts WHERE message_id = {m28} AND ordinal = 0",
        ),
        {"messages_are_complete": ["msg_{m28}"]},
        among_others=True,
    ),
    "a message that is missing from the context": Break(
        "DELETE FROM context_items WHERE message_id = {m30}",
        {
            "messages_are_reachable_once": MESSAGE_30,
            "context_is_what_lineage_says": MESSAGE_30,
            "counters_are_recounts": ["active_messages", "active_tokens"],
        },
        detail="message 30 cannot be reached",
    ),
    "a message that is shown beside its summary": Break(
        "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)"
        " VALUES ({id}, 28, 'message', {m28}, 0)",
        {"messages_are_reachable_once": ["msg_{m28}"], "context_is_what_lineage_says": ["msg_{m28}"]},
        among_others=True,
        detail="message 28 is reached 2 times, through {late}, the context",
    ),
    "a message below two summaries": Break(
        "INSERT INTO summary_messages (summary_id, message_id, ordinal) VALUES ('{late}', {m10}, 9)",
        {"messages_are_reachable_once": ["msg_{m10}"]},
        among_others=True,
    ),
    "a summary that is left out of its lineage": Break(
        "DELETE FROM summary_parents WHERE parent_summary_id = '{leaf1}'",
        {
            "messages_are_reachable_once": [f"msg_{{m{seq}}}" for seq in range(8, 14)],
            "context_is_what_lineage_says": ["{leaf1}"],
        },
        among_others=True,
    ),
    "a context item that has moved": Break(
        "UPDATE context_items SET ordinal = 100 WHERE summary_id = '{top}'",
        {"context_is_what_lineage_says": ["{top}"]},
        detail="is at ordinal 100 instead of 2",
    ),
    "a wrong cost of a context item": Break(
        "UPDATE context_items SET token_count = token_count + 1 WHERE message_id = {m30}",
        {"context_is_what_lineage_says": MESSAGE_30, "counters_are_recounts": ["active_tokens"]},
    ),
    **{
        f"a wrong {counter}": Break(
            f"UPDATE conversations SET {counter} = {counter} + 1 WHERE conversation_id = {{id}}",
            {"counters_are_recounts": [counter]},
            among_others=counter == "next_seq",
        )
        for counter in ("next_seq", "total_tokens", "active_messages", "active_tokens")
    },
    "a wrong chain head": Break(
        "UPDATE conversations SET chain_head = sha256('x') WHERE conversation_id = {id}",
        {"counters_are_recounts": ["chain_head"]},
    ),
    **{
        f"a wrong number of {counter}": Break(
            f"UPDATE conversations SET {counter} = 7 WHERE conversation_id = {{id}}",
            {"counters_are_recounts": [counter]},
        )
        for counter in ("quarantined", "cold_messages")
    },
    "a message recorded before its predecessor": Break(
        "UPDATE messages SET recorded_at = recorded_at - interval '1 day' WHERE message_id = {m30}",
        {"recording_never_goes_back": MESSAGE_30, "chains_are_unbroken": MESSAGE_30},
    ),
    "a message that is in the context twice": Break(
        (
            "DROP INDEX context_items_show_a_message_once",
            "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)"
            " SELECT conversation_id, 1000, item_type, message_id, token_count FROM context_items"
            " WHERE message_id = {m30}",
        ),
        {"nothing_is_shown_twice": MESSAGE_30, "messages_are_reachable_once": MESSAGE_30},
        among_others=True,
    ),
    "a gap among the sources of a summary": Break(
        "UPDATE summary_messages SET ordinal = ordinal + 3 WHERE summary_id = '{late}' AND ordinal > 0",
        {"sources_are_numbered_from_zero": ["{late}"]},
    ),
    "a wrong token count of a summary": Break(
        "UPDATE summaries SET token_count = 1 WHERE summary_id = '{top}'",
        {"token_counts_are_recounts": ["{top}"]},
        sealed="summaries",
    ),
    "an unknown token counter": Break(
        "UPDATE messages SET token_counter = 'abacus' WHERE message_id = {m30}",
        {"records_match_their_hashes": MESSAGE_30, "token_counts_are_recounts": MESSAGE_30},
    ),
    "an altered message": Break(
        "UPDATE messages SET content = 'Message 30' WHERE message_id = {m30}",
        {"contents_match_their_hashes": MESSAGE_30},
    ),
    "an altered message with characters that a column cannot hold": Break(
        'UPDATE messages SET exact = \'{{"content": "NUL \\u0000 and a lone \\ud801 surrogate"}}\''
        " WHERE message_id = {m2}",
        {"contents_match_their_hashes": ["msg_{m2}"]},
    ),
    "an altered message with its hash": Break(
        "UPDATE messages SET content = 'message 99', content_hash = sha256('message 99') WHERE message_id = {m30}",
        {"entries_match_their_hashes": MESSAGE_30},
    ),
    "an altered role": Break(
        "UPDATE messages SET role = 'assistant' WHERE message_id = {m30}", {"entries_match_their_hashes": MESSAGE_30}
    ),
    "an altered author": Break(
        "UPDATE messages SET author = 'bob' WHERE message_id = {m30}", {"entries_match_their_hashes": MESSAGE_30}
    ),
    "an altered number of parts": Break(
        "UPDATE messages SET chained_parts = 0 WHERE message_id = {m38}",
        {"entries_match_their_hashes": ["msg_{m38}"]},
    ),
    "an altered entry hash": Break(
        "UPDATE messages SET entry_hash = sha256('x') WHERE message_id = {m30}",
        {"entries_match_their_hashes": MESSAGE_30, "chains_are_unbroken": MESSAGE_30},
    ),
    "altered metadata": Break(
        'UPDATE messages SET metadata = \'{{"by": "Eve"}}\' WHERE message_id = {m3}',
        {"metadata_match_their_hashes": ["msg_{m3}"]},
        among_others=True,
    ),
    "an altered metadata hash": Break(
        "UPDATE messages SET metadata_hash = sha256('x') WHERE message_id = {m3}",
        {"metadata_match_their_hashes": ["msg_{m3}"]},
        among_others=True,
    ),
    "an altered time": Break(
        "UPDATE messages SET created_at = created_at - interval '1 microsecond' WHERE message_id = {m40}",
        {"chains_are_unbroken": ["msg_{m40}"]},
    ),
    **{
        f"an altered part: {change}": Break(
            f"UPDATE message_parts SET {change} WHERE message_id = {{m38}}",
            {"parts_match_their_hashes": ["part_{m38}_0"]},
            among_others=True,
        )
        for change in (
            "tool_output = 'contents'",
            "exact = NULL",
            "tool_name = 'other'",
            "tool_status = NULL",
            "part_type = 'text'",
            "part_hash = sha256('x')",
        )
    },
    **{
        f"an altered tool call: {change}": Break(
            f"UPDATE message_parts SET {change} WHERE message_id = {{m37}}",
            {"parts_match_their_hashes": ["part_{m37}_0"]} | also,
        )
        for change, also in (
            ("tool_input = '{{}}'", {}),
            # The record seals the key order of objects.
            ("metadata = '1'", {"records_match_their_hashes": ["msg_{m37}"]}),
            ("tool_call_id = 'call_2'", {}),
        )
    },
    "an altered summary": Break(
        "UPDATE summaries SET content = 'lies' WHERE summary_id = '{leaf2}'",
        {"summaries_match_their_hashes": ["{leaf2}"]},
    ),
    "exchanged sources": Break(
        "UPDATE summary_messages SET ordinal = 1 - ordinal WHERE summary_id = '{late}'",
        {"summaries_match_their_hashes": ["{late}"]},
    ),
    "a link to a summary that does not exist": Break(
        "INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal) VALUES ('{top}', 'sum_gone', 4)",
        {"lineage_stays_in_its_conversation": ["{top}"]},
        detail="its source sum_gone does not exist",
    ),
    "a summary that is a source of itself": Break(
        "INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal) VALUES ('{leaf0}', '{top}', 0)",
        {"lineage_has_no_cycle": ["{leaf0}"]},
        among_others=True,
    ),
    **{
        f"a wrong {column} of a summary": Break(
            f"UPDATE summaries SET {column} = {value} WHERE summary_id = '{{late}}'",
            {"summaries_know_what_they_cover": ["{late}"]},
            among_others=True,
            detail=detail,
        )
        for column, value, detail in (
            ("first_seq", "1", "records messages 1 to 28 instead of 27 to 28"),
            ("last_seq", "29", "records messages 27 to 29 instead of 27 to 28"),
            ("source_count", "3", "records 3 sources instead of 2"),
            ("descendant_count", "3", "records 3 messages below it instead of 2"),
            ("source_tokens", "1", ""),
            ("earliest_at", "'2001-01-01'", ""),
            ("latest_at", "'2101-01-01'", ""),
        )
    },
    "a wrong depth": Break(
        "UPDATE summaries SET depth = 2 WHERE summary_id = '{top}'",
        {"summaries_know_what_they_cover": ["{top}"]},
        sealed="summaries",
    ),
    **{
        f"a changed {column} of a conversation": Break(
            f"UPDATE conversations SET {column} = {value} WHERE conversation_id = {{id}}",
            {"rows_match_their_seals": ["conv_{id}"]},
            # The parts name the session, too.
            among_others=column == "session_id",
        )
        for column, value in (
            ("title", "'Another'"),
            ("session_id", "session_id || 'x'"),
            ("metadata", "jsonb_build_object('a', 2)"),
            ("overrides", "jsonb_build_object('fresh_tail_count', 3)"),
            ("created_at", "created_at - interval '1 microsecond'"),
        )
    },
    "a changed model of a summary": Break(
        "UPDATE summaries SET model = 'another' WHERE summary_id = '{late}'", {"rows_match_their_seals": ["{late}"]}
    ),
    "a row that was inserted past the triggers": Break(
        "INSERT INTO compaction_boundaries (boundary_id, conversation_id, host_reference, last_seq, metadata,"
        " recorded_at) OVERRIDING SYSTEM VALUE VALUES (10^12, {id}, 'forged', 1, '{{}}', now())",
        {"rows_match_their_seals": ["boundary_1000000000000"]},
    ),
    "a part with the id of another place": Break(
        "UPDATE message_parts SET part_id = 'part_1_7' WHERE message_id = {m38}",
        {"parts_have_the_names_of_their_place": ["part_1_7"]},
    ),
    "a part with another session": Break(
        "UPDATE message_parts SET session_id = 'another' WHERE message_id = {m38}",
        {"parts_have_the_names_of_their_place": ["part_{m38}_0"]},
    ),
    "a conversation written before its newest message": Break(
        "UPDATE conversations SET updated_at = updated_at - interval '1 hour' WHERE conversation_id = {id}",
        {"recording_never_goes_back": ["conv_{id}"]},
    ),
    "fewer parts than none": Break(
        "UPDATE messages SET chained_parts = -1 WHERE message_id = {m30}", {"messages_are_complete": MESSAGE_30}
    ),
    **{
        f"exact values of no column: {exact}": Break(
            (
                f"UPDATE messages SET exact = '{exact}' WHERE message_id = {{m30}}",
                f"UPDATE message_parts SET exact = '{exact}' WHERE message_id = {{m39}}",
            ),
            {"contents_match_their_hashes": MESSAGE_30, "parts_match_their_hashes": ["part_{m39}_0"]},
            among_others=True,
        )
        for exact in ("{{}}", '{{"x": 1}}')
    },
    "metadata beside other exact values": Break(
        "UPDATE messages SET metadata = jsonb_build_object('a', 2, 'b', 7) WHERE message_id = {m40}",
        {"metadata_match_their_hashes": ["msg_{m40}"]},
        detail="its metadata does not match its exact values",
    ),
    "a summary that supersedes one of other messages": Break(
        "UPDATE summaries SET supersedes_id = '{leaf0}' WHERE summary_id = '{leaf1}'",
        {"redone_summaries_stand_for_the_same": ["{leaf1}"]},
        sealed="summaries",
    ),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", BREAKS.values(), ids=BREAKS.keys())
def test_damage_is_found(conversation, check, case):
    names = _names(conversation)
    if case.dropped:
        without(*case.dropped)
    for statement in (case.statements,) if isinstance(case.statements, str) else case.statements:
        if case.sealed:
            forging(case.sealed, statement.format(**names))
        else:
            breaking(statement.format(**names))

    report = check()

    findings = found(report)
    expected = {code: [id.format(**names) for id in ids] for code, ids in case.finds.items()}
    assert {code: findings.get(code) for code in expected} == expected
    assert case.among_others or findings == expected
    first = result(report, next(iter(case.finds))).findings[0]
    assert case.detail.format(**names) in ("", first.detail)


def _names(conversation: Compacted) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "top": conversation.top.summary_id,
        "late": conversation.late.summary_id,
        **{f"leaf{number}": leaf.summary_id for number, leaf in enumerate(conversation.leaves)},
        **{f"m{seq}": message_id for seq, message_id in conversation.message_ids.items()},
    }


def test_rows_that_point_into_another_conversation_are_found(conversation):
    foreign = a_conversation("hello")
    (message,) = a_store().list_messages(conversation_id=foreign.conversation_id)
    breaking("DELETE FROM context_items WHERE message_id = %s", message.message_id)
    breaking(
        "UPDATE context_items SET message_id = %s WHERE message_id = %s",
        message.message_id,
        conversation.message_ids[30],
    )
    breaking(
        "INSERT INTO summary_messages (summary_id, message_id, ordinal) VALUES (%s, %s, 9)",
        conversation.late.summary_id,
        message.message_id,
    )

    findings = found(IntegrityChecker.from_settings().run(conversation_id=conversation.id))

    assert findings["context_points_at_rows"] == ["ordinal_30"]
    assert findings["lineage_stays_in_its_conversation"] == [conversation.late.summary_id]


@pytest.mark.parametrize(
    ("seqs", "gaps"),
    [
        ((1, 33, 34, 35, 39, 40), ["1 to 1", "33 to 35", "39 to 40"]),
        (range(1, 41), ["1 to 40"]),
    ],
)
def test_removed_messages_in_a_row_are_one_gap(conversation, check, seqs, gaps):
    for table in ("context_items", "summary_messages", "messages"):
        breaking(f"DELETE FROM {table} WHERE message_id = ANY(%s)", [conversation.message_ids[seq] for seq in seqs])

    findings = result(check(), "messages_are_complete").findings

    assert [finding.detail for finding in findings] == [f"messages {gap} are missing" for gap in gaps]


def test_all_findings_are_counted_and_the_first_are_named(conversation, check):
    touched = breaking("UPDATE messages SET content = content || '!' WHERE conversation_id = %s", conversation.id)

    contents = result(check(), "contents_match_their_hashes")

    assert contents.count == touched == 40
    assert len(contents.findings) == MOST_FINDINGS


def test_findings_are_counted_over_all_batches(conversation, monkeypatch):
    monkeypatch.setattr("integrity.examination.BATCH_CONVERSATIONS", 1)
    for other in (a_compacted_conversation(), conversation):
        breaking("UPDATE messages SET content = content || '!' WHERE conversation_id = %s", other.id)

    report = IntegrityChecker.from_settings().run()

    assert result(report, "contents_match_their_hashes").count == 2 * 40
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


def test_every_invariant_has_a_code_a_severity_and_a_sentence():
    assert len({invariant.code for invariant in INVARIANTS}) == len(INVARIANTS) == 39
    assert all(isinstance(invariant.severity, Severity) for invariant in INVARIANTS)
    assert all(invariant.sentence.endswith(".") for invariant in INVARIANTS)


def test_every_invariant_is_explained_in_the_readme():
    explained = dict(re.findall(r"^\| `(\w+)` \| (critical|error|warning) \|", README.read_text(), re.M))

    assert explained == {invariant.code: invariant.severity for invariant in INVARIANTS}
