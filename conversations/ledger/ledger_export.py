"""Write and continue ledgers in bounded memory, each conversation in a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Protocol

from conversations.cold_storage.cold_texts import ColdTexts
from conversations.errors import Conflict
from conversations.files.large_files import LargeFileService
from conversations.ledger.line_sources import (
    file_lines,
    head_move_lines,
    journal_lines,
    message_lines,
    part_lines,
    reference_lines,
    summary_lines,
)
from conversations.ledger.lines import FORMAT, VERSION, LedgerState, LineWriter, as_text
from conversations.ledger.types import Line
from conversations.ledger.verifying import Verifier, lines_in, refuse
from conversations.models import Conversation, Message
from conversations.sql import snapshot


class Section(Protocol):
    """Lines that another room adds to a ledger, and restores from it."""

    kind: str

    def lines(self, conversation_id: int) -> Iterator[Line]:
        """Yield the room's lines of this conversation, in an order that a copy keeps."""

    def restore(self, conversation_id: int, lines: Sequence[Line], *, audit_id: int) -> None:
        """Write the rows of these lines. All lines come in order, in batches.

        Rows that the ledger marks as erased refer to the audit entry `audit_id`.
        """


@dataclass(frozen=True)
class LedgerExporter:
    """Writes the lines of conversations.

    If `files` is None, the bytes of files are left out. A damaged cold block raises ColdBlockDamaged, unless `cold`
    creates a reader that reports damage instead.
    """

    sections: Sequence[Section] = ()
    files: LargeFileService | None = None
    cold: Callable[[], ColdTexts] = ColdTexts

    def export(
        self, workspace: str, conversation_ids: Iterable[int], *, writer: LineWriter | None = None
    ) -> Iterator[bytes]:
        """Yield the ledger line by line.

        A writer that has written lines continues its ledger. If it has begun a conversation, that must be the first of
        `conversation_ids`.
        """
        writer = writer or LineWriter()
        if not writer.place.lines:
            header = {"type": "header", "format": FORMAT, "version": VERSION, "hash": "sha256", "workspace": workspace}
            yield writer.write(header)
        for conversation_id in conversation_ids:
            with snapshot():
                yield from map(writer.write, self.lines(conversation_id, writer))
        place = writer.place
        conversations, counts, lines = place.conversations, place.counts.as_counts(), place.lines + 1
        yield writer.write({"type": "trailer", "conversations": conversations, "counts": counts, "lines": lines})

    def lines(self, conversation_id: int, writer: LineWriter) -> Iterator[Line]:
        """Yield the lines of a conversation that the writer has not written yet.

        Write each line with the writer before reading the next: the `end` line has the writer's counts. The first line
        and the messages never change; all later lines may change after an append.
        """
        conversation = Conversation.objects.select_related("project", "parent").get(pk=conversation_id)
        session_id = conversation.session_id
        if writer.place.session_id is None:
            yield {"type": "conversation", "session_id": session_id, "created_at": as_text(conversation.created_at)}
        yield from message_lines(conversation_id, after_seq=writer.place.seq, cold=self.cold)
        yield from part_lines(conversation_id, cold=self.cold)
        yield from head_move_lines(conversation_id)
        yield from summary_lines(conversation_id)
        for section in self.sections:
            yield from section.lines(conversation_id)
        yield from journal_lines(conversation_id)
        yield from file_lines(conversation_id, self.files)
        yield from reference_lines(conversation_id)
        yield {
            "type": "end",
            "session_id": session_id,
            "title": conversation.title,
            "metadata": conversation.metadata,
            "overrides": conversation.overrides,
            "updated_at": as_text(conversation.updated_at),
            "message_count": conversation.next_seq - 1,
            "total_tokens": conversation.total_tokens,
            "chain_head": bytes(conversation.chain_head).hex() or None,
            "counts": writer.place.counts_of_it.as_counts(),
            **_belongings(conversation),
        }


def _belongings(conversation: Conversation) -> Line:
    """Return the members for the conversation's project and parent, if it has them."""
    found: Line = {}
    if conversation.project is not None:
        found["project"] = conversation.project.name
    if conversation.parent is not None:
        found["parent_session_id"] = conversation.parent.session_id
        found["parent_link"] = conversation.parent_link
    return found


@dataclass(frozen=True)
class Continuation:
    """Where a ledger file is continued: after its last message.

    Messages never change and come first; everything after them is written again.
    """

    offset: int
    place: LedgerState
    workspace: str
    # Whether the file has its trailer.
    is_whole: bool
    chain_hash: str = ""
    erased: int = 0
    # The conversations before the current one, with their numbers of messages and of erased messages.
    ended: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def continuation_of(file: BinaryIO, *, name: str) -> Continuation | None:
    """Verify a file and find where to continue it.

    Returns None if the file has no complete first line. Raises Invalid if the file fails verification.
    """
    with Verifier() as verifier:
        here: Continuation | None = None
        offset, is_whole, erased, ended = 0, False, 0, dict[str, tuple[int, int]]()
        for line in lines_in(file):
            if not line.endswith(b"\n"):
                break
            values = verifier.feed(line)
            # A file that fails verification must be removed, not continued.
            refuse(verifier.findings, name=name)
            offset += len(line)
            assert values is not None
            kind = values["type"]
            is_whole = kind == "trailer"
            erased = 0 if kind == "conversation" else erased + (kind == "message" and values["erased"])
            if kind == "end":
                ended[values["session_id"]] = values["message_count"], erased
            if kind in ("header", "conversation", "message"):
                here = Continuation(
                    offset=offset,
                    place=verifier.place,
                    workspace=verifier.workspace,
                    is_whole=False,
                    chain_hash=values.get("chain_hash", ""),
                    erased=erased,
                    ended=ended,
                )
        return here and replace(here, is_whole=is_whole)


def require_same(conversation: Conversation, continuation: Continuation, *, name: str) -> None:
    """Raise Conflict unless the file agrees with the conversation so far."""
    place = continuation.place
    if place.session_id != conversation.session_id:
        raise Conflict(
            f"{name} is a ledger of {str(place.session_id)[:80]!r}, not of {conversation.session_id[:80]!r}."
        )
    if not place.seq:
        return
    messages = Message.objects.filter(conversation_id=conversation.pk)
    last = messages.filter(seq=place.seq).values_list("chain_hash", flat=True).first()
    if last is None or bytes(last).hex() != continuation.chain_hash:
        raise Conflict(f"Message {place.seq} in {name} differs from the stored one; export to another file.")
    erased = messages.filter(seq__lte=place.seq, erased_by__isnull=False).count()
    if erased != continuation.erased:
        raise Conflict(
            f"Messages in {name} were erased since. Remove the file, which still has their texts, and export again.",
            code="erased_since",
        )
