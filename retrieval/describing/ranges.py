"""Describe which summaries cover a range of messages, and the tokens to open it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from pydantic import Field

from compaction.sources import withheld_items
from conversations.errors import Invalid
from conversations.humanize import counted
from conversations.models import Conversation, Summary
from conversations.scope import Scope
from conversations.sql import rows, snapshot
from conversations.store.paths import WHOLE, Path, active_path
from retrieval.describing.summary_outlines import MOST_IN_MANIFEST, STATEMENTS, in_order, outline
from retrieval.reader import Reader
from retrieval.types import ExpandedItem, MessageSpan, SummaryOutline

NOW = "infinity"


@dataclass(frozen=True)
class CoveringNode:
    """A summary in the active context that covers messages of a range.

    `seqs_before` and `seqs_after` count the messages that it covers outside the range. `content` is its text; later
    summaries of the list have none if the texts together exceed `LCM_MAX_EXPAND_TOKENS`.
    """

    summary: SummaryOutline
    messages_in_range: int
    seqs_before: int
    seqs_after: int
    content: str | None = None
    # Whether the text is withheld: it is quarantined, or repeats quarantined words.
    quarantined: bool = False


@dataclass(frozen=True)
class RangeDescription:
    """The active context's items that cover a range, and the tokens to open them.

    `nodes` (summaries) and `raw_messages` (not summarized) together cover every message of the range that is on the
    active path, and reach from `first_seq` to `last_seq`. `manifest` lists the summaries below the nodes that overlap
    the range, in order, each with its `opening_tokens`; if `manifest_complete` is false, only the nearest.
    `context_tokens` counts the tokens of nodes and raw messages, `message_tokens` those of all messages of the range.
    """

    conversation_id: int
    from_seq: int
    to_seq: int
    first_seq: int
    last_seq: int
    message_count: int
    message_tokens: int
    context_tokens: int
    nodes: tuple[CoveringNode, ...]
    raw_messages: tuple[MessageSpan, ...]
    manifest: tuple[SummaryOutline, ...]
    manifest_complete: bool
    note: str | None = None


@dataclass(frozen=True)
class RangeExpansion:
    """One page of the expansion of a range, in order.

    `next_cursor` continues it, and is absent at the end. For an item of the active context, `of` is the conversation.
    With `keep_ends`, the last item is the last one of the range, whole or only its beginning, and `gap` are the
    messages skipped before it.
    """

    conversation_id: int
    from_seq: int
    to_seq: int
    depth: int
    include_messages: bool
    only_messages: bool
    items: tuple[ExpandedItem, ...]
    tokens: int
    token_cap: int
    truncated: bool
    cursor: Annotated[str | None, Field(serialization_alias="next_cursor")]
    gap: MessageSpan | None = None
    note: str | None = None


class Range(NamedTuple):
    """The messages of a conversation between two seqs, both included."""

    conversation: Conversation
    from_seq: int
    to_seq: int

    @property
    def conversation_id(self) -> int:
        return int(self.conversation.conversation_id)

    @property
    def last_seq(self) -> int:
        """The seq of the last existing message in the range."""
        return min(self.to_seq, self.conversation.next_seq - 1)

    @property
    def message_count(self) -> int:
        return max(0, self.last_seq - self.from_seq + 1)

    def note(self, path: Path = WHOLE, *, summarized: int | None = None) -> str | None:
        """Count messages of the range that do not exist, are off the path or left out.

        `summarized` is the number of messages that summaries cover, if the others are left out.
        """
        notes = []
        if self.last_seq < self.to_seq:
            notes.append(f"The conversation has {counted(self.conversation.next_seq - 1, 'message')} so far.")
        off = 0 if path is WHOLE else rows(STATEMENTS["off_path"], {**self.values, **path.values})[0][0]
        if off:
            missing = counted(off, "message")
            notes.append(
                f"Not on the active path: {missing} of the range; expand_range with only_messages returns them."
            )
        if summarized is not None and (raw := self.message_count - off - summarized) > 0:
            notes.append(f"Not summarized: {counted(raw, 'message')} of the range; give include_messages to read them.")
        return " ".join(notes) or None

    @property
    def values(self) -> dict[str, int]:
        """The parameters of the range in SQL statements."""
        return {"conversation_id": self.conversation_id, "from": self.from_seq, "upto": self.last_seq}


def range_of(conversation_id: int, from_seq: int, to_seq: int, *, scope: Scope) -> Range:
    """Make a range. Raises NotFound, and Invalid if `from_seq` is after `to_seq`."""
    if from_seq > to_seq:
        raise Invalid(f"from_seq: {from_seq} is after to_seq, {to_seq}; exchange them.")
    return Range(scope.conversation(conversation_id), from_seq, to_seq)


def covering(stretch: Range, path: Path, *, as_of: datetime | str = NOW) -> list[tuple[SummaryOutline, int]]:
    """The summaries on a path that cover the range, each with its messages in range."""
    if not stretch.message_count:
        return []
    found = rows(STATEMENTS["covering"], {**stretch.values, **path.values, "time": as_of})
    return [(outline(row[:-1]), row[-1]) for row in found]


@dataclass(frozen=True)
class RangeReader(Reader):
    """Describes ranges of messages."""

    def describe_range(self, *, conversation_id: int, from_seq: int, to_seq: int) -> RangeDescription:
        """List the summaries and messages that cover a range, and the cost to open them.

        The cost is in tokens. Each summary is returned with its text, the number of messages of the range that it
        covers, and how far it extends beyond the range. Raises NotFound for an unknown conversation; Invalid if
        `to_seq` is before `from_seq`.
        """
        with snapshot():
            stretch = range_of(conversation_id, from_seq, to_seq, scope=self.scope)
            path = active_path(conversation_id) if stretch.conversation.moves else WHOLE
            found = covering(stretch, path)
            below = _below(stretch, [summary.summary_id for summary, _ in found])
            raw = [MessageSpan(*row) for row in rows(STATEMENTS["raw_spans"], stretch.values)]
            [[message_tokens, raw_tokens]] = rows(STATEMENTS["tokens"], stretch.values)
            withheld = withheld_items(conversation_id) if stretch.conversation.quarantined else ()
            note = stretch.note(path)
            readable = [summary for summary, _ in found if summary.summary_id not in withheld]
            texts = _texts(readable, self.policy.max_expand_tokens)
        nodes = [
            CoveringNode(
                summary=summary,
                messages_in_range=messages,
                seqs_before=max(0, from_seq - summary.first_seq),
                seqs_after=max(0, summary.last_seq - stretch.last_seq),
                content=texts.get(summary.summary_id),
                quarantined=summary.summary_id in withheld,
            )
            for summary, messages in found
        ]
        return RangeDescription(
            conversation_id=conversation_id,
            from_seq=from_seq,
            to_seq=to_seq,
            first_seq=min([from_seq, *(summary.first_seq for summary, _ in found)]),
            last_seq=max([stretch.last_seq, *(summary.last_seq for summary, _ in found)]),
            message_count=stretch.message_count,
            message_tokens=message_tokens,
            context_tokens=raw_tokens + sum(summary.token_count for summary, _ in found),
            nodes=tuple(nodes),
            raw_messages=tuple(raw),
            manifest=tuple(below[:MOST_IN_MANIFEST]),
            manifest_complete=len(below) <= MOST_IN_MANIFEST,
            note=note,
        )


def _below(stretch: Range, roots: Sequence[str]) -> list[SummaryOutline]:
    if not roots:
        return []
    return in_order(
        outline(row)
        for row in rows(STATEMENTS["below"], {**stretch.values, "roots": list(roots), "most": MOST_IN_MANIFEST})
    )


def _texts(summaries: Sequence[SummaryOutline], most_tokens: int) -> dict[str, str]:
    """Read the texts of the first summaries, with at most `most_tokens` in total."""
    wanted = []
    for summary in summaries:
        most_tokens -= summary.token_count
        if most_tokens < 0:
            break
        wanted.append(summary.summary_id)
    return dict(Summary.objects.filter(pk__in=wanted).values_list("pk", "content")) if wanted else {}
