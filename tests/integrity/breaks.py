"""Statements that break a compacted conversation past the triggers, and what a check then finds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.integrity.breaking import Compacted, breaking, forging, without


@dataclass(frozen=True)
class Break:
    """Statements past the triggers, and what a check then finds.

    `{m30}` is the id of message 30, `{top}`, `{late}` and `{leaf0}` are summaries, `{id}` is the conversation.
    """

    statements: str | tuple[str, ...]
    finds: dict[str, list[str]]
    # False if other findings follow from the same damage.
    is_alone: bool = True
    # The constraint, and its table, that would refuse the statements.
    dropped: tuple[str, str] | None = None
    # A table whose row seals are computed again, as a forger would.
    sealed: str = ""
    detail: str = ""

    def __call__(self, conversation: Compacted) -> None:
        names = names_of(conversation)
        if self.dropped:
            without(*self.dropped)
        for statement in (self.statements,) if isinstance(self.statements, str) else self.statements:
            if self.sealed:
                forging(self.sealed, statement.format(**names))
            else:
                breaking(statement.format(**names))


# Of a break from which other findings follow, too.
among_others = partial(Break, is_alone=False)

MESSAGE_30 = ["msg_{m30}"]
ROWS = ("message_parts", "context_items", "messages")
REMOVE_NEWEST = tuple(f"DELETE FROM {table} WHERE message_id BETWEEN {{m37}} AND {{m40}}" for table in ROWS)
COUNT_AGAIN = (
    "UPDATE conversations c SET next_seq = 37, active_messages = active_messages - 4,"
    " total_tokens = (SELECT sum(token_count) FROM messages m WHERE m.conversation_id = c.conversation_id),"
    " active_tokens = (SELECT sum(token_count) FROM context_items i WHERE i.conversation_id = c.conversation_id)"
    " WHERE conversation_id = {id}"
)


def of_message(seq: int, change: str, *codes: str, **options: Any) -> Break:
    """Another value in a message, found by invariants that name the message."""
    named = dict.fromkeys(codes, [f"msg_{{m{seq}}}"])
    return Break(f"UPDATE messages SET {change} WHERE message_id = {{m{seq}}}", named, **options)


BREAKS = {
    "a summary without a source": among_others(
        "DELETE FROM summary_messages WHERE summary_id = '{late}'", {"summaries_have_sources": ["{late}"]}
    ),
    "a context item that points at nothing": among_others(
        "UPDATE context_items SET message_id = 10^12 WHERE message_id = {m30}",
        {"context_points_at_rows": ["ordinal_30"]},
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
    "two messages with one seq": among_others(
        "UPDATE messages SET seq = 31 WHERE message_id = {m30}",
        {"ordinals_are_unique": ["seq_31"], "messages_are_complete": ["seq_30"]},
        dropped=("messages_conversation_id_seq_key", "messages"),
    ),
    "two parts with one ordinal": among_others(
        "INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, part_hash)"
        " SELECT 'part_x', message_id, session_id, 'text', 0, sha256('x') FROM message_parts WHERE message_id = {m39}",
        {"ordinals_are_unique": ["msg_{m39}"], "parts_match_their_hashes": ["part_x"]},
        dropped=("message_parts_message_id_ordinal_key", "message_parts"),
    ),
    "two source messages with one ordinal": among_others(
        "UPDATE summary_messages SET ordinal = 1 WHERE summary_id = '{leaf0}'", {"ordinals_are_unique": ["{leaf0}"]}
    ),
    "two source summaries with one ordinal": among_others(
        "UPDATE summary_parents SET ordinal = 1 WHERE summary_id = '{top}'", {"ordinals_are_unique": ["{top}"]}
    ),
    **{
        f"a removed message{where}": among_others(
            tuple(f"DELETE FROM {table} WHERE message_id = {{m{seq}}}" for table in ROWS),
            {"messages_are_complete": [f"seq_{seq}"], "chains_are_unbroken": [f"msg_{{m{seq + 1}}}"]},
        )
        for where, seq in (("", 30), (" below a summary", 15), (" with a part", 38))
    },
    "removed newest messages": Break(REMOVE_NEWEST, {"messages_are_complete": ["seq_37"]}, is_alone=False),
    "removed newest messages with their counters": Break(
        (*REMOVE_NEWEST, COUNT_AGAIN), {"counters_are_recounts": ["chain_head"]}
    ),
    "two messages in each other's place": among_others(
        (
            "UPDATE messages SET seq = 1000 WHERE message_id = {m30}",
            "UPDATE messages SET seq = 30 WHERE message_id = {m31}",
            "UPDATE messages SET seq = 31 WHERE message_id = {m30}",
        ),
        {"chains_are_unbroken": ["msg_{m30}", "msg_{m31}", "msg_{m32}"]},
    ),
    "a removed part": among_others(
        "DELETE FROM message_parts WHERE message_id = {m37}", {"messages_are_complete": ["msg_{m37}"]}
    ),
    "a removed part with a later one in its place": among_others(
        (
            "INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, part_hash)"
            " SELECT 'part_last', {m37}, 's', 'text', 1, sha256('x')",
            "DELETE FROM message_parts WHERE message_id = {m37} AND ordinal = 0",
        ),
        {"messages_are_complete": ["msg_{m37}"], "entries_match_their_hashes": ["msg_{m37}"]},
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
    "a message that is shown beside its summary": among_others(
        "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)"
        " VALUES ({id}, 28, 'message', {m28}, 0)",
        {"messages_are_reachable_once": ["msg_{m28}"], "context_is_what_lineage_says": ["msg_{m28}"]},
        detail="message 28 is reached 2 times, through {late}, the context",
    ),
    "a message below two summaries": among_others(
        "INSERT INTO summary_messages (summary_id, message_id, ordinal) VALUES ('{late}', {m10}, 9)",
        {"messages_are_reachable_once": ["msg_{m10}"]},
    ),
    "a summary that is left out of its lineage": among_others(
        "DELETE FROM summary_parents WHERE parent_summary_id = '{leaf1}'",
        {
            "messages_are_reachable_once": [f"msg_{{m{seq}}}" for seq in range(8, 14)],
            "context_is_what_lineage_says": ["{leaf1}"],
        },
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
            is_alone=counter != "next_seq",
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
    "a message recorded before its predecessor": of_message(
        30, "recorded_at = recorded_at - interval '1 day'", "recording_never_goes_back", "chains_are_unbroken"
    ),
    "a message that is in the context twice": among_others(
        (
            "DROP INDEX context_items_show_a_message_once",
            "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)"
            " SELECT conversation_id, 1000, item_type, message_id, token_count FROM context_items"
            " WHERE message_id = {m30}",
        ),
        {"nothing_is_shown_twice": MESSAGE_30, "messages_are_reachable_once": MESSAGE_30},
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
    "an unknown token counter": of_message(
        30, "token_counter = 'abacus'", "records_match_their_hashes", "token_counts_are_recounts"
    ),
    "an altered message": of_message(30, "content = 'Message 30'", "contents_match_their_hashes"),
    "an altered message with characters that a column cannot hold": of_message(
        2, 'exact = \'{{"content": "NUL \\u0000 and a lone \\ud801 surrogate"}}\'', "contents_match_their_hashes"
    ),
    "an altered message with its hash": of_message(
        30, "content = 'message 99', content_hash = sha256('message 99')", "entries_match_their_hashes"
    ),
    "an altered role": of_message(30, "role = 'assistant'", "entries_match_their_hashes"),
    "an altered author": of_message(30, "author = 'bob'", "entries_match_their_hashes"),
    "an altered number of parts": of_message(38, "chained_parts = 0", "entries_match_their_hashes"),
    "an altered entry hash": of_message(
        30, "entry_hash = sha256('x')", "entries_match_their_hashes", "chains_are_unbroken"
    ),
    "altered metadata": of_message(3, 'metadata = \'{{"by": "Eve"}}\'', "metadata_match_their_hashes", is_alone=False),
    "an altered metadata hash": of_message(
        3, "metadata_hash = sha256('x')", "metadata_match_their_hashes", is_alone=False
    ),
    "an altered time": of_message(40, "created_at = created_at - interval '1 microsecond'", "chains_are_unbroken"),
    **{
        f"an altered part: {change}": Break(
            f"UPDATE message_parts SET {change} WHERE message_id = {{m{seq}}}",
            {"parts_match_their_hashes": [f"part_{{m{seq}}}_0"]},
            is_alone=False,
        )
        for seq, change in (
            (37, "metadata = '1'"),
            (38, "tool_output = 'contents'"),
            (38, "exact = NULL"),
            (38, "tool_name = 'other'"),
            (38, "part_hash = sha256('x')"),
        )
    },
    **{
        f"an altered {name} summary": Break(
            f"UPDATE summaries SET content = 'lies' WHERE summary_id = '{{{name}}}'",
            {"summaries_match_their_hashes": [f"{{{name}}}"]},
        )
        for name in ("late", "top")
    },
    "a summary with the sources of another": among_others(
        "UPDATE summary_parents SET summary_id = '{late}' WHERE parent_summary_id = '{leaf0}'",
        {"sources_are_numbered_from_zero": ["{top}"]},
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
    "a summary that is a source of itself": among_others(
        "INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal) VALUES ('{leaf0}', '{top}', 0)",
        {"lineage_has_no_cycle": ["{leaf0}"]},
    ),
    **{
        f"a wrong {column} of a summary": Break(
            f"UPDATE summaries SET {column} = {value} WHERE summary_id = '{{late}}'",
            {"summaries_know_what_they_cover": ["{late}"]},
            is_alone=False,
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
            is_alone=column != "session_id",
        )
        for column, value in (
            ("session_id", "session_id || 'x'"),
            ("metadata", "jsonb_build_object('a', 2)"),
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
    "a conversation written before its newest message": Break(
        "UPDATE conversations SET updated_at = updated_at - interval '1 hour' WHERE conversation_id = {id}",
        {"recording_never_goes_back": ["conv_{id}"]},
    ),
    "fewer parts than none": of_message(30, "chained_parts = -1", "messages_are_complete"),
    "exact values of no column": among_others(
        (
            "UPDATE messages SET exact = '{{}}' WHERE message_id = {m30}",
            "UPDATE message_parts SET exact = '{{\"x\": 1}}' WHERE message_id = {m39}",
        ),
        {"contents_match_their_hashes": MESSAGE_30, "parts_match_their_hashes": ["part_{m39}_0"]},
    ),
    "metadata beside other exact values": of_message(
        40,
        "metadata = jsonb_build_object('a', 2, 'b', 7)",
        "metadata_match_their_hashes",
        detail="its metadata does not match its exact values",
    ),
    "a summary that supersedes one of other messages": Break(
        "UPDATE summaries SET supersedes_id = '{leaf0}' WHERE summary_id = '{leaf1}'",
        {"redone_summaries_stand_for_the_same": ["{leaf1}"]},
        sealed="summaries",
    ),
}


def names_of(conversation: Compacted) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "top": conversation.top.summary_id,
        "late": conversation.late.summary_id,
        **{f"leaf{number}": leaf.summary_id for number, leaf in enumerate(conversation.leaves)},
        **{f"m{seq}": message_id for seq, message_id in conversation.message_ids.items()},
    }
