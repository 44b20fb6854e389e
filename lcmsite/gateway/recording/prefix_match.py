"""Find the new messages of a request; most of its history is stored. Pure.

Messages after the longest stored prefix are new. If the stored history continues differently, they begin another
branch. A host that has compacted by itself sends a shorter history that begins with a summary: this is recorded as a
boundary, and the new messages are appended after it.

In another branch and after a boundary, messages have other keys. An erased message is then recognized by its role and
content hash, so that it is not stored again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conversations.content.flattening import content_of
from conversations.content.hashing import content_hash
from conversations.store.injected import without_injected
from conversations.types import NewMessage, PartType, Role
from lcmsite.gateway.surfaces import WireMessage
from lcmsite.gateway.surfaces_digest import Call, Link, calls_in, digest_in, words_in

# Opening words of the summaries that hosts make when they compact.
_SUMMARIES = re.compile(
    r"\s*(?:This session is being continued from a previous conversation"
    r"|Another language model started to solve this problem and produced a summary"
    r"|The conversation history before this point was compacted into the following summary"
    r"|What did we do so far\?)"
)
_COMPACTION_TYPES = ("compaction", "compaction_summary", "context_compaction")


@dataclass(frozen=True)
class Erased:
    """What is left of an erased message."""

    seq: int
    role: Role
    content_hash: bytes


@dataclass(frozen=True)
class CallingAnswer:
    """A stored answer with calls; of an erased one, only the calls' ids and names."""

    seq: int
    words: str
    calls: Sequence[Call]
    is_erased: bool = False

    def is_repeated_by(self, message: NewMessage, calls: Sequence[Call]) -> bool:
        """Whether a message with these calls is this answer, perhaps rewritten."""
        if len(calls) != len(self.calls):
            return False
        if self.is_erased:
            return all(map(Call.is_named_like, calls, self.calls))
        return words_in(message) == self.words and all(map(Call.repeats, calls, self.calls))


@dataclass(frozen=True)
class History:
    """What is stored of the conversation that a request belongs to."""

    head_seq: int
    # By idempotency key: seqs of the request's stored messages; 0 if known to be stored, but not looked up.
    seqs: Mapping[str, int]
    # The keys of the messages on the active branch, oldest first; empty where matching does not need them.
    active_keys: Sequence[str] = ()
    # The erased messages; empty where matching does not need them.
    erased: Sequence[Erased] = ()
    # By chain hash: seqs and texts of the incomplete answers that follow it; None for an erased text.
    incomplete_answers: Mapping[bytes, Sequence[tuple[int, str | None]]] = field(default_factory=dict)
    # By chain hash: the complete answers with calls that follow it; empty where matching does not need them.
    answers_with_calls: Mapping[bytes, Sequence[CallingAnswer]] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    """The seq that new messages follow, and indexes of new and altered messages."""

    seq: int
    new: tuple[int, ...]
    # Known messages that came back in another form, such as cleared tool results.
    altered: tuple[int, ...] = ()
    # Known answers that came back with rewritten calls.
    rewritten: tuple[int, ...] = ()
    is_boundary: bool = False


def is_host_summary(message: WireMessage) -> bool:
    """Whether the message is a host's summary of the history before it."""
    if message.row.get("type") in _COMPACTION_TYPES:
        return True
    parts = message.message.parts
    if any(part.part_type is PartType.COMPACTION for part in parts):
        return True
    texts = [message.message.content or "", *(part.text_content or "" for part in parts)]
    return any(map(_SUMMARIES.match, texts))


def last_known(messages: Sequence[WireMessage], links: Sequence[Link], seqs: Mapping[str, int]) -> int:
    """Return the index of the last stored message that is not loose, or -1."""
    known = (
        index
        for index in range(len(links) - 1, -1, -1)
        if not messages[index].digest.is_loose and links[index].key in seqs
    )
    return next(known, -1)


def match(messages: Sequence[WireMessage], links: Sequence[Link], stored: History, *, base_seq: int = 0) -> Match:
    """Match a request with the stored history; its first message follows `base_seq`."""
    last = last_known(messages, links, stored.seqs)
    seq = stored.seqs[links[last].key] if last >= 0 else base_seq
    known = set(range(last + 1))
    rewritten: list[int] = []
    for index in range(last + 1, len(links)):
        before = links[index - 1].chain if index else b""
        if links[index].key in stored.seqs and messages[index].digest.is_loose:
            seq = stored.seqs[links[index].key]
        elif (answer_seq := _stored_seq(messages[index], before, stored)) is not None:
            seq = answer_seq
        elif (answer_seq := _rewritten_seq(messages[index], before, stored)) is not None:
            seq = answer_seq
            rewritten.append(index)
        else:
            break
        known.add(index)
    rest = [index for index in range(len(links)) if index not in known and links[index].key not in stored.seqs]
    summaries = [index for index in rest if is_host_summary(messages[index])]
    if rest and stored.head_seq and (summaries or (last < 0 and base_seq == 0)):
        new = _new_behind_boundary(messages, rest, summaries, stored)
        # Another case: the host has dropped its oldest messages. The first one left is stored, and so is an answer.
        retained = [index for index in rest if index not in new and not messages[index].digest.is_loose]
        first = next((index for index in rest if not messages[index].digest.is_loose), -1)
        is_shorter = first in retained and any(messages[index].message.role is Role.ASSISTANT for index in retained)
        if summaries or is_shorter:
            return Match(stored.head_seq, new, is_boundary=True)
    has_gaps = any(not messages[index].digest.is_loose and links[index].key not in stored.seqs for index in range(last))
    altered = () if has_gaps else tuple(index for index in range(last) if links[index].key not in stored.seqs)
    return Match(seq, _new_in_branch(messages, rest, stored, seq), altered, tuple(rewritten))


def _stored_seq(message: WireMessage, chain: bytes, stored: History) -> int | None:
    """Return the seq of the incomplete answer that this message repeats, or None."""
    if message.message.role is not Role.ASSISTANT:
        return None
    answers = stored.incomplete_answers.get(chain, ())
    # An erased answer can be any: its text must not be stored again.
    return next((seq for seq, text in answers if text is None or begins_alike(message, text)), None)


def _rewritten_seq(message: WireMessage, chain: bytes, stored: History) -> int | None:
    """Return the seq of the answer whose calls this message repeats, or None."""
    calls = calls_in(message.message) if message.message.role is Role.ASSISTANT else []
    answers = stored.answers_with_calls.get(chain, ()) if calls else ()
    found = [answer for answer in answers if answer.is_repeated_by(message.message, calls)]
    # The question may have been asked anew after an erasure: an answer that is there comes first.
    return min(found, key=lambda answer: answer.is_erased).seq if found else None


def begins_alike(message: WireMessage, text: str) -> bool:
    """Whether one text is the beginning of the other, white space aside.

    Agents keep the part of an answer that they received. An empty text matches nothing.
    """
    one, other = _bare_text(message), "".join(text.split())
    return bool(one and other) and (other.startswith(one) or one.startswith(other))


def _bare_text(message: WireMessage) -> str:
    parts = message.message.parts
    texts = [part.text_content or "" for part in parts if part.part_type is PartType.TEXT]
    return "".join("".join(texts or [message.message.content or ""]).split())


def _new_behind_boundary(
    messages: Sequence[WireMessage], rest: Sequence[int], summaries: Sequence[int], stored: History
) -> tuple[int, ...]:
    """Return the indexes in `rest` of messages that are new after a boundary.

    Messages that the host kept from before the boundary are left out. All after the last answer or summary are new.
    """
    known = Counter(map(digest_in, stored.active_keys))
    erased = Counter((each.role, each.content_hash) for each in stored.erased)
    answers = [index for index in rest if messages[index].message.role is Role.ASSISTANT]
    last_old = max([-1, *answers, *summaries])
    new = []
    for index in rest:
        digest = messages[index].digest.text
        # A summary is new even if an earlier message has the same text, unless it is the vendor's answer, sent again.
        is_old = index <= last_old and (index in answers or index not in summaries)
        if is_old and known[digest] > 0:
            known[digest] -= 1
        elif not (is_old and _is_erased(messages[index], erased)):
            new.append(index)
    return tuple(new)


def _new_in_branch(messages: Sequence[WireMessage], rest: Sequence[int], stored: History, seq: int) -> tuple[int, ...]:
    """Return the indexes in `rest` without messages that were erased after `seq`.

    All after the last answer are new. An erased message up to `seq` has its place before `rest`.
    """
    erased = Counter((each.role, each.content_hash) for each in stored.erased if each.seq > seq)
    last_old = max((index for index in rest if messages[index].message.role is Role.ASSISTANT), default=-1)
    return tuple(index for index in rest if index > last_old or not _is_erased(messages[index], erased))


def _is_erased(message: WireMessage, erased: Counter[tuple[Role, bytes]]) -> bool:
    """Whether the message equals an erased one; takes it from `erased`."""
    if not erased:
        return False
    form = (message.message.role, _content_hash(message))
    if erased[form] <= 0:
        return False
    erased[form] -= 1
    return True


def _content_hash(message: WireMessage) -> bytes:
    """Return the content hash with which an append stores the message.

    A long text that is moved to a file has another.
    """
    [stored] = without_injected([message.message]).messages or [message.message]
    return content_hash(content_of(stored))
