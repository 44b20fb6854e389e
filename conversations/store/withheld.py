"""Withhold the texts of quarantined messages and files from readers.

Admins read them with `lcm read-quarantined` or in Django's admin. Ledgers, backups and the journal hold everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from conversations.errors import Conflict
from conversations.fast.records import record
from conversations.models import Quarantine
from conversations.sql import array, load, rows, texts
from conversations.types import LargeFileRecord, MessageRecord, PartRecord, SummaryRecord

_SQL = load("conversations/messages.sql")
# The fields that a withheld part keeps, like an erased one: its position, and those that pair a call with its result.
_PLACE = ("part_id", "message_id", "ordinal", "part_type", "tool_call_id", "tool_name", "tool_status")


def readable(messages: Sequence[MessageRecord]) -> list[MessageRecord]:
    """Return the messages, quarantined ones without their texts."""
    held = quarantined_messages(message.conversation_id for message in messages)
    return [_without_texts(each) if each.message_id in held else each for each in messages]


def quarantined_messages(conversation_ids: Iterable[int]) -> frozenset[int]:
    """Return the ids of withheld messages: see `messages.sql`."""
    wanted = set(conversation_ids)
    return frozenset(id for (id,) in rows(_SQL["quarantined_messages"], [array(wanted)])) if wanted else frozenset()


def readable_summaries(summaries: Sequence[SummaryRecord]) -> list[SummaryRecord]:
    """Return the summaries, quarantined ones without their texts.

    Does not withhold summaries that repeat words of messages quarantined later: see `withheld_in` in
    `compaction/sources.py`.
    """
    wanted = [each.summary_id for each in summaries]
    held = set(Quarantine.objects.filter(target__in=wanted, released_at=None).values_list("target", flat=True))
    return [replace(each, content="") if each.summary_id in held else each for each in summaries]


def readable_files(files: Sequence[LargeFileRecord]) -> list[LargeFileRecord]:
    """Return the files, withheld ones without their names and descriptions."""
    held = quarantined_files(file.file_id for file in files)
    return [
        replace(each, file_name=None, exploration_summary=None, quarantined=True) if each.file_id in held else each
        for each in files
    ]


def require_readable(file_id: str) -> None:
    """Raise Conflict if a file is quarantined, or has a quarantined message's text."""
    if is_quarantined(file_id):
        raise Conflict(
            f"{file_id} is quarantined, so its bytes are not returned. An admin can read its text with `lcm"
            f" read-quarantined {file_id}`.",
            code="quarantined",
        )


def is_quarantined(file_id: str) -> bool:
    return bool(quarantined_files([file_id]))


def quarantined_files(file_ids: Iterable[str]) -> frozenset[str]:
    """Return the ids of files that are quarantined, or hold a quarantined text."""
    wanted = list(file_ids)
    return frozenset(id for (id,) in rows(_SQL["quarantined_files"], [texts(wanted)])) if wanted else frozenset()


def _without_texts(message: MessageRecord) -> MessageRecord:
    parts = tuple(record(PartRecord, {name: getattr(part, name) for name in _PLACE}) for part in message.parts)
    return replace(message, content="", author=None, metadata={}, parts=parts, quarantined=True)
