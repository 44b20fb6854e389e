"""Whether the check finds what is broken, exactly that, and nothing where nothing is."""

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
from integrity.types import IntegrityReport, InvariantResult, Severity
from tests.factories import a_conversation, a_store, a_workspace
from tests.integrity.breaking import Compacted, a_compacted_conversation, breaking, forging, found, result, without

README = Path(__file__).resolve().parents[2] / "integrity" / "README.md"

IN_CONVERSATIONS = {invariant.code for invariant in INVARIANTS if not invariant.of_the_site}


def told(result: InvariantResult) -> InvariantResult:
    """What became of an invariant, however long it took."""
    return replace(result, milliseconds=0)


@pytest.fixture
def check(conversation: Compacted) -> Callable[[], IntegrityReport]:
    """Checks everything there is; what it finds must be the same as in a check of the broken conversation alone."""

    def check() -> IntegrityReport:
        everything = IntegrityChecker.from_settings().run()
        alone = IntegrityChecker.from_settings().run(conversation_id=conversation.id)
        assert [told(result) for result in everything.invariants if result.code in IN_CONVERSATIONS] == [
            told(result) for result in alone.invariants
        ]
        return alone

    return check


def test_an_untouched_conversation_is_clean(conversation, check):
    report = check()

    assert found(report) == {}
    assert report.is_clean
    assert (report.conversations_checked, report.messages_checked) == (1, 40)
    assert IntegrityChecker.from_settings().run().conversations_checked == 2
    assert [result.code for result in report.invariants] == [each.code for each in INVARIANTS if not each.of_the_site]


def test_a_summary_without_a_source_is_found(conversation, check):
    breaking("DELETE FROM summary_messages WHERE summary_id = %s", conversation.late.summary_id)

    assert found(check())["summaries_have_sources"] == [conversation.late.summary_id]


def test_a_context_item_that_points_at_nothing_is_found(conversation, check):
    breaking("UPDATE context_items SET message_id = 10^12 WHERE message_id = %s", conversation.message_ids[30])

    report = check()

    assert found(report)["context_points_at_rows"] == ["ordinal_30"]
    assert (
        result(report, "context_points_at_rows").findings[0].detail
        == "points at msg_1000000000000, which does not exist"
    )


def test_a_context_item_that_points_into_another_conversation_is_found(conversation, check):
    foreign = a_conversation("hello")
    (message,) = a_store().list_messages(conversation_id=foreign.conversation_id)
    breaking("DELETE FROM context_items WHERE message_id = %s", message.message_id)
    breaking(
        "UPDATE context_items SET message_id = %s WHERE message_id = %s",
        message.message_id,
        conversation.message_ids[30],
    )

    report = IntegrityChecker.from_settings().run(conversation_id=conversation.id)

    assert found(report)["context_points_at_rows"] == ["ordinal_30"]


def test_a_context_item_of_the_wrong_type_is_found(conversation, check):
    without("context_items_check", "context_items")
    breaking("UPDATE context_items SET item_type = 'summary' WHERE message_id = %s", conversation.message_ids[30])

    assert found(check()) == {"context_points_at_rows": ["ordinal_30"]}


def test_two_context_items_in_one_place_are_found(conversation, check):
    without("context_items_pkey", "context_items")
    breaking("UPDATE context_items SET ordinal = 31 WHERE message_id = %s", conversation.message_ids[30])

    assert found(check()) == {
        "ordinals_are_unique": ["ordinal_31"],
        "context_is_what_lineage_says": [conversation.message(30)],
    }


def test_two_messages_with_one_seq_are_found(conversation, check):
    without("messages_conversation_id_seq_key", "messages")
    breaking("UPDATE messages SET seq = 31 WHERE message_id = %s", conversation.message_ids[30])

    report = check()

    assert found(report)["ordinals_are_unique"] == ["seq_31"]
    assert found(report)["messages_are_complete"] == ["seq_30"]


def test_two_parts_with_one_ordinal_are_found(conversation, check):
    without("message_parts_message_id_ordinal_key", "message_parts")
    breaking(
        """
        INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, part_hash)
        SELECT 'part_x', message_id, session_id, 'text', 0, %s FROM message_parts WHERE message_id = %s
        """,
        bytes.fromhex("c9cf1d4c7b1a5e5f7dd1d9b1c8c2a0d2d5b7d6c3f4e5a6b7c8d9e0f1a2b3c4d5"),
        conversation.message_ids[39],
    )

    report = check()

    assert found(report)["ordinals_are_unique"] == [conversation.message(39)]
    assert found(report)["parts_match_their_hashes"] == ["part_x"]


def test_two_sources_in_one_place_are_found(conversation, check):
    breaking("UPDATE summary_messages SET ordinal = 1 WHERE summary_id = %s", conversation.leaves[0].summary_id)
    breaking("UPDATE summary_parents SET ordinal = 1 WHERE summary_id = %s", conversation.top.summary_id)

    ids = found(check())["ordinals_are_unique"]

    assert ids == sorted([conversation.leaves[0].summary_id, conversation.top.summary_id])


def test_a_removed_message_is_found(conversation, check):
    breaking("DELETE FROM context_items WHERE message_id = %s", conversation.message_ids[30])
    breaking("DELETE FROM messages WHERE message_id = %s", conversation.message_ids[30])

    report = check()

    assert found(report)["messages_are_complete"] == ["seq_30"]
    assert found(report)["chains_are_unbroken"] == [conversation.message(31)]


def test_removed_messages_in_a_row_are_one_gap(conversation, check):
    for table in ("context_items", "messages"):
        breaking(
            f"DELETE FROM {table} WHERE message_id = ANY(%s)",
            [conversation.message_ids[seq] for seq in (1, 33, 34, 35, 39, 40)],
        )

    findings = result(check(), "messages_are_complete").findings

    assert [finding.detail for finding in findings] == [
        "messages 1 to 1 are missing",
        "messages 33 to 35 are missing",
        "messages 39 to 40 are missing",
    ]


def test_a_conversation_without_any_of_its_messages_is_found(conversation, check):
    for table in ("context_items", "summary_messages"):
        breaking(
            f"DELETE FROM {table} WHERE message_id IN (SELECT message_id FROM messages WHERE conversation_id = %s)",
            conversation.id,
        )
    breaking("DELETE FROM messages WHERE conversation_id = %s", conversation.id)

    findings = result(check(), "messages_are_complete").findings

    assert [finding.detail for finding in findings] == ["messages 1 to 40 are missing"]


@pytest.mark.parametrize("seq", [28, 37])
def test_a_removed_part_is_found(conversation, check, seq):
    given = {28: 0, 37: 1}[seq]
    breaking(
        "INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, part_hash) "
        "SELECT 'part_last', %s, 's', 'text', %s, sha256('x')",
        conversation.message_ids[seq],
        1,
    )
    breaking("DELETE FROM message_parts WHERE message_id = %s AND ordinal = 0", conversation.message_ids[seq])

    report = check()

    assert found(report)["messages_are_complete"] == [conversation.message(seq)]
    assert ("entries_match_their_hashes" in found(report)) == bool(given)


def test_a_message_that_is_missing_in_the_context_is_found(conversation, check):
    breaking("DELETE FROM context_items WHERE message_id = %s", conversation.message_ids[30])

    report = check()

    assert found(report) == {
        "messages_are_reachable_once": [conversation.message(30)],
        "context_is_what_lineage_says": [conversation.message(30)],
        "counters_are_recounts": ["active_messages", "active_tokens"],
    }
    assert result(report, "messages_are_reachable_once").findings[0].detail == "message 30 cannot be reached"


def test_a_message_that_is_shown_beside_its_summary_is_found(conversation, check):
    breaking(
        "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count) "
        "VALUES (%s, 28, 'message', %s, 0)",
        conversation.id,
        conversation.message_ids[28],
    )

    report = check()

    assert found(report)["messages_are_reachable_once"] == [conversation.message(28)]
    assert found(report)["context_is_what_lineage_says"] == [conversation.message(28)]
    detail = result(report, "messages_are_reachable_once").findings[0].detail
    assert detail == f"message 28 is reached 2 times, through {conversation.late.summary_id}, the context"


def test_a_message_below_two_summaries_is_found(conversation, check):
    breaking(
        "INSERT INTO summary_messages (summary_id, message_id, ordinal) VALUES (%s, %s, 9)",
        conversation.late.summary_id,
        conversation.message_ids[10],
    )

    assert found(check())["messages_are_reachable_once"] == [conversation.message(10)]


def test_messages_below_a_summary_that_is_left_out_of_its_lineage_are_out_of_reach(conversation, check):
    breaking("DELETE FROM summary_parents WHERE parent_summary_id = %s", conversation.leaves[1].summary_id)

    report = check()

    assert found(report)["messages_are_reachable_once"] == [conversation.message(seq) for seq in range(8, 14)]
    assert found(report)["context_is_what_lineage_says"] == [conversation.leaves[1].summary_id]


def test_a_context_item_that_has_moved_is_found(conversation, check):
    breaking("UPDATE context_items SET ordinal = 100 WHERE summary_id = %s", conversation.top.summary_id)

    report = check()

    assert found(report) == {"context_is_what_lineage_says": [conversation.top.summary_id]}
    assert result(report, "context_is_what_lineage_says").findings[0].detail == "is at ordinal 100 instead of 2"


def test_a_wrong_cost_of_a_context_item_is_found(conversation, check):
    breaking(
        "UPDATE context_items SET token_count = token_count + 1 WHERE message_id = %s", conversation.message_ids[30]
    )

    assert found(check()) == {
        "context_is_what_lineage_says": [conversation.message(30)],
        "counters_are_recounts": ["active_tokens"],
    }


@pytest.mark.parametrize("counter", ["next_seq", "total_tokens", "active_messages", "active_tokens"])
def test_a_counter_that_is_off_is_found(conversation, check, counter):
    breaking(f"UPDATE conversations SET {counter} = {counter} + 1 WHERE conversation_id = %s", conversation.id)

    report = check()

    assert found(report)["counters_are_recounts"] == [counter]
    assert set(found(report)) <= {"counters_are_recounts", "messages_are_complete"}


def test_a_chain_head_that_is_off_is_found(conversation, check):
    breaking("UPDATE conversations SET chain_head = sha256('x') WHERE conversation_id = %s", conversation.id)

    assert found(check()) == {"counters_are_recounts": ["chain_head"]}


def test_an_altered_message_is_found(conversation, check):
    breaking("UPDATE messages SET content = 'Message 30' WHERE message_id = %s", conversation.message_ids[30])

    assert found(check()) == {"contents_match_their_hashes": [conversation.message(30)]}


def test_an_altered_message_with_characters_that_a_column_cannot_hold_is_found(conversation, check):
    breaking(
        "UPDATE messages SET exact = %s WHERE message_id = %s",
        '{"content": "NUL \\u0000 and a lone \\ud801 surrogate"}',
        conversation.message_ids[2],
    )

    assert found(check()) == {"contents_match_their_hashes": [conversation.message(2)]}


def test_an_altered_message_with_a_hash_to_match_breaks_its_seal(conversation, check):
    breaking(
        "UPDATE messages SET content = 'message 99', content_hash = sha256('message 99') WHERE message_id = %s",
        conversation.message_ids[30],
    )

    assert found(check()) == {"entries_match_their_hashes": [conversation.message(30)]}


@pytest.mark.parametrize("change", ["role = 'assistant'", "author = 'bob'", "chained_parts = 0"])
def test_a_message_given_to_somebody_else_breaks_its_seal(conversation, check, change):
    seq = 38 if "parts" in change else 30
    breaking(f"UPDATE messages SET {change} WHERE message_id = %s", conversation.message_ids[seq])

    assert found(check()) == {"entries_match_their_hashes": [conversation.message(seq)]}


def test_an_altered_message_with_a_seal_to_match_breaks_the_chain(conversation, check):
    breaking("UPDATE messages SET entry_hash = sha256('x') WHERE message_id = %s", conversation.message_ids[30])

    assert found(check()) == {
        "entries_match_their_hashes": [conversation.message(30)],
        "chains_are_unbroken": [conversation.message(30)],
    }


@pytest.mark.parametrize("change", ['metadata = \'{"by": "Eve"}\'', "metadata_hash = sha256('x')"])
def test_altered_metadata_are_found(conversation, check, change):
    breaking(f"UPDATE messages SET {change} WHERE message_id = %s", conversation.message_ids[3])

    assert found(check())["metadata_match_their_hashes"] == [f"msg_{conversation.message_ids[3]}"]


def test_an_altered_time_breaks_the_chain(conversation, check):
    breaking(
        "UPDATE messages SET created_at = created_at - interval '1 microsecond' WHERE message_id = %s",
        conversation.message_ids[40],
    )

    assert found(check()) == {"chains_are_unbroken": [conversation.message(40)]}


@pytest.mark.parametrize(
    "change",
    [
        "tool_output = 'contents'",
        "exact = NULL",
        "tool_name = 'other'",
        "tool_status = NULL",
        "part_type = 'text'",
        "part_hash = sha256('x')",
    ],
)
def test_an_altered_part_is_found(conversation, check, change):
    breaking(f"UPDATE message_parts SET {change} WHERE message_id = %s", conversation.message_ids[38])

    assert found(check())["parts_match_their_hashes"] == [f"part_{conversation.message_ids[38]}_0"]


@pytest.mark.parametrize("change", ["tool_input = '{}'", "metadata = '1'", "tool_call_id = 'call_2'"])
def test_an_altered_tool_call_is_found(conversation, check, change):
    breaking(f"UPDATE message_parts SET {change} WHERE message_id = %s", conversation.message_ids[37])

    findings = found(check())
    # What the keys of an object hold is sealed with their order.
    assert findings.pop("records_match_their_hashes", [conversation.message(37)]) == [conversation.message(37)]
    assert findings == {"parts_match_their_hashes": [f"part_{conversation.message_ids[37]}_0"]}


def test_an_altered_summary_is_found(conversation, check):
    breaking("UPDATE summaries SET content = 'lies' WHERE summary_id = %s", conversation.leaves[2].summary_id)

    assert found(check()) == {"summaries_match_their_hashes": [conversation.leaves[2].summary_id]}


def test_exchanged_sources_break_the_seal_of_a_summary(conversation, check):
    breaking("UPDATE summary_messages SET ordinal = 1 - ordinal WHERE summary_id = %s", conversation.late.summary_id)

    assert found(check()) == {"summaries_match_their_hashes": [conversation.late.summary_id]}


def test_a_summary_of_a_foreign_message_is_found(conversation, check):
    foreign = a_conversation("hello")
    (message,) = a_store().list_messages(conversation_id=foreign.conversation_id)
    breaking(
        "INSERT INTO summary_messages (summary_id, message_id, ordinal) VALUES (%s, %s, 9)",
        conversation.late.summary_id,
        message.message_id,
    )

    report = IntegrityChecker.from_settings().run(conversation_id=conversation.id)

    assert found(report)["lineage_stays_in_its_conversation"] == [conversation.late.summary_id]


def test_a_link_to_a_summary_that_does_not_exist_is_found(conversation, check):
    breaking(
        "INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal) VALUES (%s, 'sum_gone', 4)",
        conversation.top.summary_id,
    )

    report = check()

    assert found(report) == {"lineage_stays_in_its_conversation": [conversation.top.summary_id]}
    assert report.broken[0].findings[0].detail == "its source sum_gone does not exist"


@pytest.mark.timeout(30)
def test_a_summary_that_is_a_source_of_itself_is_found(conversation, check):
    leaf, top = conversation.leaves[0], conversation.top
    breaking(
        "INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal) VALUES (%s, %s, 0)",
        leaf.summary_id,
        top.summary_id,
    )

    assert found(check())["lineage_has_no_cycle"] == [leaf.summary_id]


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("first_seq", "1", "records messages 1 to 28 instead of 27 to 28"),
        ("last_seq", "29", "records messages 27 to 29 instead of 27 to 28"),
        ("source_count", "3", "records 3 sources instead of 2"),
        ("descendant_count", "3", "records 3 messages below it instead of 2"),
        ("source_tokens", "1", None),
        ("earliest_at", "'2001-01-01'", None),
        ("latest_at", "'2101-01-01'", None),
    ],
)
def test_a_summary_that_says_untruly_what_it_covers_is_found(conversation, check, column, value, told):
    breaking(f"UPDATE summaries SET {column} = {value} WHERE summary_id = %s", conversation.late.summary_id)

    report = check()

    covers = result(report, "summaries_know_what_they_cover")
    assert [finding.id for finding in covers.findings] == [conversation.late.summary_id]
    assert told is None or covers.findings[0].detail == told


def test_a_summary_that_supersedes_one_of_other_messages_is_found(conversation, check):
    first, second = conversation.leaves[0].summary_id, conversation.leaves[1].summary_id
    forging("summaries", "UPDATE summaries SET supersedes_id = %s WHERE summary_id = %s", first, second)

    assert found(check()) == {"redone_summaries_stand_for_the_same": [second]}


def test_a_wrong_depth_is_found(conversation, check):
    forging("summaries", "UPDATE summaries SET depth = 2 WHERE summary_id = %s", conversation.top.summary_id)

    assert found(check()) == {"summaries_know_what_they_cover": [conversation.top.summary_id]}


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


def test_nothing_to_check_is_clean(db):
    report = IntegrityChecker.from_settings(Scope(a_workspace("empty").pk)).run()

    assert report.is_clean
    assert report.conversations_checked == 0


def test_every_invariant_has_a_code_a_severity_and_a_sentence():
    assert len({invariant.code for invariant in INVARIANTS}) == len(INVARIANTS) == 39
    assert all(isinstance(invariant.severity, Severity) for invariant in INVARIANTS)
    assert all(invariant.sentence.endswith(".") for invariant in INVARIANTS)


def test_every_invariant_is_explained_in_the_readme():
    explained = dict(re.findall(r"^\| `(\w+)` \| (critical|error|warning) \|", README.read_text(), re.M))

    assert explained == {invariant.code: invariant.severity for invariant in INVARIANTS}
