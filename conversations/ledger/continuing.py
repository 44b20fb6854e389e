"""Continues a ledger that broke off, or whose conversation has grown: the result is what one export would have written.

Messages never change once they are written, and stand first; all that may come to be behind them is written anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from conversations.errors import Conflict
from conversations.ledger.progress import Place
from conversations.ledger.verifying import Verifier, lines_in, refuse
from conversations.models import Conversation, Message


@dataclass(frozen=True)
class Continuation:
    """Where a file is to be cut off and written on: behind the last whole message of its last conversation."""

    offset: int
    place: Place
    workspace: str
    # The conversations before that one, and whether the file has its trailer.
    finished: int
    is_whole: bool
    chain_hash: str = ""
    erased: int = 0


def continuation_of(file: BinaryIO, *, name: str) -> Continuation | None:
    """Read and verify what is there; None if not even the first line is. Invalid if it does not hold."""
    with Verifier() as verifier:
        here: Continuation | None = None
        offset, is_whole, erased = 0, False, 0
        for line in lines_in(file):
            if not line.endswith(b"\n"):
                break
            values = verifier.feed(line)
            # One that does not verify is to be removed, not continued.
            refuse(verifier.findings, name=name)
            offset += len(line)
            assert values is not None
            kind = values["type"]
            is_whole = kind == "trailer"
            erased = 0 if kind == "conversation" else erased + (kind == "message" and values["erased"])
            if kind in ("header", "conversation", "message"):
                here = Continuation(
                    offset=offset,
                    place=verifier.place,
                    workspace=verifier.workspace,
                    finished=verifier.place.conversations,
                    is_whole=False,
                    chain_hash=values.get("chain_hash", ""),
                    erased=erased,
                )
        if here is None:
            return None
        return Continuation(**{**vars(here), "is_whole": is_whole})


def require_same(conversation: Conversation, continuation: Continuation, *, name: str) -> None:
    """Conflict unless the conversation still says what the file does, up to where it is continued."""
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
        raise Conflict(f"Message {place.seq} in {name} is not the one that is stored; export into another file.")
    erased = messages.filter(seq__lte=place.seq, erased_by__isnull=False).count()
    if erased != continuation.erased:
        raise Conflict(
            f"Messages in {name} were erased since. Remove the file, which still has their texts, and export anew.",
            code="erased_since",
        )
