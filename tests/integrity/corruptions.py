"""Ten ways in which a store can rot or be tampered with, each with the invariant that must find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

from conversations.models import LargeFile
from tests.integrity.breaking import Compacted, breaking


@dataclass(frozen=True)
class Corruption:
    """`corrupt` breaks something of a conversation; the number says where, whatever its size."""

    corrupt: Callable[[Compacted, int], None]
    code: str


def flipped_byte(conversation: Compacted, number: int) -> None:
    message_id = conversation.message_ids[1 + number % 36]
    # One bit of one character of ASCII, somewhere in the text.
    breaking(
        "UPDATE messages"
        " SET content = overlay(content placing chr(ascii(substr(content, place, 1)) # 1) from place for 1)"
        " FROM (SELECT 1 + %s %% length(content) AS place FROM messages WHERE message_id = %s) AS chosen"
        " WHERE message_id = %s",
        number,
        message_id,
        message_id,
    )


def dropped_row(conversation: Compacted, number: int) -> None:
    message_id = conversation.message_ids[1 + number % 40]
    breaking("DELETE FROM message_parts WHERE message_id = %s", message_id)
    breaking("DELETE FROM context_items WHERE message_id = %s", message_id)
    breaking("DELETE FROM messages WHERE message_id = %s", message_id)


def swapped_seq(conversation: Compacted, number: int) -> None:
    first = 1 + number % 40
    second = 1 + (number // 40 % 39 + first) % 40
    one, other = conversation.message_ids[first], conversation.message_ids[second]
    breaking("UPDATE messages SET seq = 1000 WHERE message_id = %s", one)
    breaking("UPDATE messages SET seq = %s WHERE message_id = %s", first, other)
    breaking("UPDATE messages SET seq = %s WHERE message_id = %s", second, one)


def reparented_summary(conversation: Compacted, number: int) -> None:
    breaking(
        "UPDATE summary_parents SET summary_id = %s WHERE parent_summary_id = %s",
        conversation.late.summary_id,
        conversation.leaves[number % 4].summary_id,
    )


def cycle(conversation: Compacted, number: int) -> None:
    breaking(
        "INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal) VALUES (%s, %s, 0)",
        conversation.leaves[number % 4].summary_id,
        conversation.top.summary_id,
    )


def stolen_context_item(conversation: Compacted, number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT ordinal FROM context_items WHERE conversation_id = %s ORDER BY 1", [conversation.id])
        ordinals = [ordinal for (ordinal,) in cursor]
    breaking(
        "DELETE FROM context_items WHERE conversation_id = %s AND ordinal = %s",
        conversation.id,
        ordinals[number % len(ordinals)],
    )


def cut_tail(conversation: Compacted, number: int) -> None:
    """The newest messages with all that leads to them; every second time, the counters say so, too."""
    left = 39 - number % 11
    gone = [message_id for seq, message_id in conversation.message_ids.items() if seq > left]
    for table in ("message_parts", "context_items", "messages"):
        breaking(f"DELETE FROM {table} WHERE message_id = ANY(%s)", gone)
    if number % 2:
        breaking(
            "UPDATE conversations SET next_seq = %s + 1, active_messages = active_messages - %s,"
            " total_tokens = (SELECT sum(token_count) FROM messages m"
            "                 WHERE m.conversation_id = conversations.conversation_id),"
            " active_tokens = (SELECT sum(token_count) FROM context_items i"
            "                  WHERE i.conversation_id = conversations.conversation_id)"
            " WHERE conversation_id = %s",
            left,
            len(gone),
            conversation.id,
        )


def altered_summary(conversation: Compacted, number: int) -> None:
    summaries = [*conversation.leaves, conversation.top, conversation.late]
    breaking(
        "UPDATE summaries SET content = content || %s WHERE summary_id = %s",
        f" Not {number}.",
        summaries[number % 6].summary_id,
    )


COUNTERS = ("total_tokens", "active_messages", "active_tokens", "quarantined", "cold_messages")


def wrong_counter(conversation: Compacted, number: int) -> None:
    counter = COUNTERS[number % len(COUNTERS)]
    breaking(
        f"UPDATE conversations SET {counter} = {counter} + %s WHERE conversation_id = %s",
        1 + number // len(COUNTERS) % 1000,
        conversation.id,
    )


def missing_file(conversation: Compacted, number: int) -> None:
    """Away from where it was; `put_back` brings it back."""
    for file in LargeFile.objects.filter(conversation_id=conversation.id):
        path = Path(settings.MEDIA_ROOT) / file.storage_uri
        path.rename(path.with_suffix(".gone"))


def put_back(conversation: Compacted) -> None:
    for path in Path(settings.MEDIA_ROOT).rglob("*.gone"):
        path.rename(path.with_suffix(""))


CORRUPTIONS: Mapping[str, Corruption] = {
    "flipped byte": Corruption(flipped_byte, "contents_match_their_hashes"),
    "dropped row": Corruption(dropped_row, "messages_are_complete"),
    "swapped seq": Corruption(swapped_seq, "chains_are_unbroken"),
    "re-parented summary": Corruption(reparented_summary, "summaries_match_their_hashes"),
    "cycle": Corruption(cycle, "lineage_has_no_cycle"),
    "stolen context item": Corruption(stolen_context_item, "context_is_what_lineage_says"),
    "cut tail": Corruption(cut_tail, "counters_are_recounts"),
    "altered summary": Corruption(altered_summary, "summaries_match_their_hashes"),
    "wrong counter": Corruption(wrong_counter, "counters_are_recounts"),
    "missing file": Corruption(missing_file, "files_are_stored_whole"),
}
