"""Writes ledgers: a conversation's lines in one order, each read at one moment, with memory that stays flat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from conversations.cold_storage.cold_texts import ColdTexts
from conversations.ledger.line_sources import (
    ReadFile,
    file_lines,
    message_lines,
    part_lines,
    reference_lines,
    summary_lines,
)
from conversations.ledger.lines import FORMAT, VERSION, as_text
from conversations.ledger.progress import Pen
from conversations.ledger.types import Line
from conversations.models import Conversation
from conversations.sql import snapshot


class Section(Protocol):
    """Lines that another room adds to the ledger of a conversation, and rebuilds from it."""

    kind: str

    def lines(self, conversation_id: int) -> Iterator[Line]:
        """What the room has of this conversation, in an order of its own that every database gives."""

    def restore(self, conversation_id: int, lines: Sequence[Line]) -> None:
        """Write what such lines say; some of them at a time, in their order."""


@dataclass(frozen=True)
class LedgerExporter:
    """Knows what all lines of a conversation are; `read_file` None leaves the bytes of files out.

    A ledger is not written over a damaged cold block: ColdBlockDamaged. `cold` reads them otherwise.
    """

    sections: Sequence[Section] = ()
    read_file: ReadFile | None = None
    cold: Callable[[], ColdTexts] = ColdTexts

    def export(self, workspace: str, conversation_ids: Iterable[int], *, pen: Pen | None = None) -> Iterator[bytes]:
        """The whole ledger, line by line; with a pen that has written before, what is left to write.

        The first of the conversations is then the one that the pen is in, if it is in one.
        """
        pen = pen or Pen()
        if not pen.place.lines:
            yield pen.write(header(workspace))
        for conversation_id in conversation_ids:
            yield from self._conversation(conversation_id, pen)
        place = pen.place
        yield pen.write(
            {
                "type": "trailer",
                "conversations": place.conversations,
                "counts": vars(place.counts),
                "lines": place.lines + 1,
            }
        )

    def lines_of(self, conversation_id: int) -> Iterator[Line]:
        """What the lines of one conversation say, the first and the last excepted."""
        yield from message_lines(conversation_id, cold=self.cold)
        yield from self.later_lines(conversation_id)

    def later_lines(self, conversation_id: int) -> Iterator[Line]:
        """What is said behind the messages: all that may come to be after them."""
        yield from part_lines(conversation_id, cold=self.cold)
        yield from summary_lines(conversation_id)
        for section in self.sections:
            yield from section.lines(conversation_id)
        yield from file_lines(conversation_id, self.read_file)
        yield from reference_lines(conversation_id)

    def _conversation(self, conversation_id: int, pen: Pen) -> Iterator[bytes]:
        with snapshot():
            conversation = Conversation.objects.get(pk=conversation_id)
            if pen.place.session_id is None:
                yield pen.write(first_line(conversation))
            for values in message_lines(conversation_id, after_seq=pen.place.seq, cold=self.cold):
                yield pen.write(values)
            for values in self.later_lines(conversation_id):
                yield pen.write(values)
            yield pen.write({**last_line(conversation), "counts": vars(pen.place.counts_of_it)})


def header(workspace: str) -> Line:
    return {"type": "header", "format": FORMAT, "version": VERSION, "hash": "sha256", "workspace": workspace}


def first_line(conversation: Conversation) -> Line:
    """What a conversation is from its first moment on."""
    return {
        "type": "conversation",
        "session_id": conversation.session_id,
        "created_at": as_text(conversation.created_at),
    }


def last_line(conversation: Conversation) -> dict[str, Any]:
    """What its row says of it now, but for what is derived; `counts` come behind it."""
    return {
        "type": "end",
        "session_id": conversation.session_id,
        "title": conversation.title,
        "metadata": conversation.metadata,
        "overrides": conversation.overrides,
        "updated_at": as_text(conversation.updated_at),
        "message_count": conversation.next_seq - 1,
        "total_tokens": conversation.total_tokens,
        "chain_head": bytes(conversation.chain_head).hex() or None,
    }
