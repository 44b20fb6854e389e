"""Find the new messages of a request; most of its history is stored. Pure.

Messages behind the longest stored prefix are new; where the stored history continues otherwise, they begin another
branch. A host that has compacted by itself sends a shorter history with a summary at its head: that is recorded as a
boundary, and the rest is appended behind it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conversations.types import PartType, Role
from lcmsite.gateway.surfaces import WireMessage
from lcmsite.gateway.surfaces_digest import Link, digest_in

# Opening words of the summaries that hosts make when they compact.
_SUMMARIES = re.compile(
    r"\s*(?:This session is being continued from a previous conversation"
    r"|Another language model started to solve this problem and produced a summary"
    r"|The conversation history before this point was compacted into the following summary"
    r"|What did we do so far\?)"
)
_COMPACTED = ("compaction", "compaction_summary", "context_compaction")


@dataclass(frozen=True)
class Stored:
    """What is stored of the conversation that a request belongs to."""

    head_seq: int
    # By idempotency key: seqs of the request's stored messages; 0 if known to be stored, but not looked up.
    seqs: Mapping[str, int]
    # The keys of the messages on the active branch, oldest first; empty where matching does not need them.
    path: Sequence[str] = ()
    # By chain hash: seqs and texts of the incomplete answers that follow it.
    broken: Mapping[bytes, Sequence[tuple[int, str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    """The seq that new messages follow, and indexes of new and altered messages."""

    seq: int
    new: tuple[int, ...]
    # Known loose messages that came back in another form, such as cleared tool results.
    altered: tuple[int, ...] = ()
    is_boundary: bool = False


def is_host_summary(message: WireMessage) -> bool:
    """Whether the message is a host's summary of the history before it."""
    if message.row.get("type") in _COMPACTED:
        return True
    parts = message.message.parts
    if any(part.part_type is PartType.COMPACTION for part in parts):
        return True
    texts = [message.message.content or "", *(part.text_content or "" for part in parts)]
    return any(map(_SUMMARIES.match, texts))


def last_known(messages: Sequence[WireMessage], links: Sequence[Link], seqs: Mapping[str, int]) -> int:
    """Return the index of the last stored message that is not loose, or -1."""
    known = (
        place
        for place in range(len(links) - 1, -1, -1)
        if not messages[place].digest.is_loose and links[place].key in seqs
    )
    return next(known, -1)


def match(messages: Sequence[WireMessage], links: Sequence[Link], stored: Stored, *, base_seq: int = 0) -> Match:
    """Match a request with the stored history; its first message follows `base_seq`."""
    last = last_known(messages, links, stored.seqs)
    seq = stored.seqs[links[last].key] if last >= 0 else base_seq
    known = set(range(last + 1))
    for place in range(last + 1, len(links)):
        if links[place].key in stored.seqs and messages[place].digest.is_loose:
            seq = stored.seqs[links[place].key]
        elif (broken := _broken_answer(messages[place], links[place - 1].chain if place else b"", stored)) is not None:
            seq = broken
        else:
            break
        known.add(place)
    rest = [place for place in range(len(links)) if place not in known and links[place].key not in stored.seqs]
    summaries = [place for place in rest if is_host_summary(messages[place])]
    if rest and stored.head_seq and (summaries or (last < 0 and base_seq == 0)):
        new = _behind_boundary(messages, rest, summaries, stored.path)
        # Or the host has dropped the oldest messages: the first that is left is known, and so is an answer.
        kept = [place for place in rest if place not in new and not messages[place].digest.is_loose]
        first = next((place for place in rest if not messages[place].digest.is_loose), -1)
        is_shorter = first in kept and any(messages[place].message.role is Role.ASSISTANT for place in kept)
        if summaries or is_shorter:
            return Match(stored.head_seq, new, is_boundary=True)
    gaps = any(not messages[place].digest.is_loose and links[place].key not in stored.seqs for place in range(last))
    altered = () if gaps else tuple(place for place in range(last) if links[place].key not in stored.seqs)
    return Match(seq, tuple(rest), altered)


def _broken_answer(message: WireMessage, chain: bytes, stored: Stored) -> int | None:
    """Return the seq of a stored incomplete answer that this message is, or None."""
    if message.message.role is not Role.ASSISTANT:
        return None
    found = (seq for seq, cut in stored.broken.get(chain, ()) if is_begun_alike(message, cut))
    return next(found, None)


def is_begun_alike(message: WireMessage, text: str) -> bool:
    """Whether one text is the beginning of the other, white space aside.

    Agents keep as much of an answer as they got. An empty text matches nothing.
    """
    one, other = _bare(message), "".join(text.split())
    return bool(one and other) and (other.startswith(one) or one.startswith(other))


def _bare(message: WireMessage) -> str:
    parts = message.message.parts
    texts = [part.text_content or "" for part in parts if part.part_type is PartType.TEXT]
    return "".join("".join(texts or [message.message.content or ""]).split())


def _behind_boundary(
    messages: Sequence[WireMessage], rest: Sequence[int], summaries: Sequence[int], path: Sequence[str]
) -> tuple[int, ...]:
    """Return those of `rest` that are new behind a boundary.

    `rest` are indexes. Messages kept from before it are left out; all behind the last answer or summary are new.
    """
    known = Counter(map(digest_in, path))
    answers = [place for place in rest if messages[place].message.role is Role.ASSISTANT]
    last_old = max([-1, *answers, *summaries])
    new = []
    for place in rest:
        digest = messages[place].digest.text
        # A summary with the text of an earlier one is new all the same, unless it is a vendor's answer coming back.
        if place <= last_old and (place in answers or place not in summaries) and known[digest] > 0:
            known[digest] -= 1
        else:
            new.append(place)
    return tuple(new)
