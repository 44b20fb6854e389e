"""Read the active context and the sources of summaries, and build their records."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import Count, F, Q, QuerySet

from compaction.planning.planner import Slot
from compaction.rendering import ERASED, WITHHELD, readable_source, without_added
from compaction.summarizing.escalation import Accepted
from compaction.summarizing.summarizer import Source, SourceMessage, SourceSummary
from conversations import sql
from conversations.cold_storage.cold_texts import ColdTexts, cold_texts
from conversations.content import hashing
from conversations.models import ContextItem, Quarantine, Summary, SummaryMessage
from conversations.types import NewSummary, Role, SummaryKind, SummaryRecord

_STATEMENTS = sql.load("compaction/sources.sql")
_QUARANTINES = sql.load("compaction/quarantines.sql")
# The limits for the texts that the significance gate reads.
_MOST_TURNS = 200
_MOST_SUMMARIES = 20
_MOST_CHARACTERS = 4_000


def read_turns(conversation_id: int) -> list[str]:
    """Read the newest non-system messages in the context, oldest first, cut short."""
    found = sql.rows(_STATEMENTS["newest_turns"], [_MOST_CHARACTERS, conversation_id, _MOST_TURNS])
    cold = cold_texts(block_id for _, _, block_id in found)
    return [
        (text if block_id is None or cold is None else cold.message(block_id, message_id).content)[:_MOST_CHARACTERS]
        for text, message_id, block_id in reversed(found)
    ]


def read_summary_texts(conversation_id: int) -> list[str]:
    """Read the texts of the newest summaries in the context."""
    items = ContextItem.objects.filter(conversation_id=conversation_id, summary__isnull=False).order_by("-ordinal")
    return list(items.values_list("summary__content", flat=True)[:_MOST_SUMMARIES])


def read_cost(conversation_id: int) -> tuple[int, int]:
    """Return the number of messages in the active context, and its tokens."""
    [(messages, tokens)] = sql.rows(_STATEMENTS["context_cost"], [conversation_id])
    return messages, tokens


def read_slots(conversation_id: int) -> list[Slot]:
    """Read the active context as slots, oldest first, in one query."""
    found = sql.rows(_STATEMENTS["context_slots"], {"conversation_id": conversation_id})
    return [
        Slot(
            ordinal,
            tokens,
            message_id,
            summary_id,
            role and Role(role),
            depth,
            last_seq,
            tuple(calls or ()),
            is_answer or False,
        )
        for ordinal, tokens, message_id, summary_id, role, depth, last_seq, calls, is_answer in found
    ]


class SourceRecord(NamedTuple):
    """One source, a message or a summary, with the values that a summary needs.

    A NamedTuple, because it is cheaper than a frozen dataclass, and every message of a long context becomes one.
    """

    # None for a summary, whose id is that of `source`.
    message_id: int | None
    source: Source
    hash: str
    first_seq: int
    last_seq: int
    earliest_at: datetime
    latest_at: datetime
    tokens: int = 0
    messages: int = 1
    depth: int = -1
    file_ids: Collection[str] = ()
    is_degraded: bool = False
    is_waiting: bool = False

    @property
    def id(self) -> str:
        return self.source.source_id

    @property
    def is_readable(self) -> bool:
        """Whether the source has a text to summarize."""
        return self.source.text not in (ERASED, WITHHELD)

    @property
    def is_erased(self) -> bool:
        return self.source.text == ERASED


_first_seq = attrgetter("first_seq")


class ChunkSources:
    """The sources of one summary, oldest first."""

    def __init__(self, messages: Iterable[SourceRecord], summaries: Iterable[SourceRecord]) -> None:
        messages, summaries = sorted(messages, key=_first_seq), sorted(summaries, key=_first_seq)
        self.message_ids = [each.message_id for each in messages if each.message_id is not None]
        self.summary_ids = [each.id for each in summaries]
        # The hashes, in the order of the link tables: messages, then summaries.
        self.hashes = [each.hash for each in (*messages, *summaries)]
        self.records = sorted([*messages, *summaries], key=_first_seq)
        self.texts = tuple(each.source for each in self.records)
        self.depth = 1 + max(each.depth for each in self.records)


def withheld_items(conversation_id: int) -> frozenset[str]:
    """Return ids of quarantined items, and of summaries and files with their text."""
    return frozenset(id for (id,) in sql.rows(_QUARANTINES["withheld_items"], {"id": conversation_id}))


def withheld_in(conversation_ids: Iterable[int | None]) -> frozenset[str]:
    """Return the ids of all withheld items in these conversations.

    Call this before texts are returned: these items must be returned without a text, and marked as `quarantined`.
    """
    wanted = {id for id in conversation_ids if id is not None}
    affected = sql.rows(_QUARANTINES["with_quarantines"], [sql.array(wanted)]) if wanted else []
    return frozenset[str]().union(*(withheld_items(id) for (id,) in affected))


def outdated_summaries(conversation_id: int) -> frozenset[str]:
    """Return summaries with a source that was quarantined or released later."""
    found = sql.rows(_QUARANTINES["outdated_summaries"], {"id": conversation_id})
    return frozenset(summary_id for summary_id, _, _ in found)


def conversations_to_redo(*, limit: int) -> list[int]:
    """Return conversations with an outdated summary in their context."""
    statement = _QUARANTINES["conversations_to_redo"].format(outdated=_QUARANTINES["outdated_summaries"])
    return [conversation_id for (conversation_id,) in sql.rows(statement, {"id": None, "limit": limit})]


def read_sources(chunk: Sequence[Slot], *, withheld: Collection[str]) -> ChunkSources:
    """Read the sources in a chunk's slots, in the order of the context.

    Items in `withheld` remain sources, but without a text, so that all messages stay reachable.
    """
    message_ids = tuple(slot.message_id for slot in chunk if slot.message_id is not None)
    summary_ids = tuple(slot.summary_id for slot in chunk if slot.summary_id is not None)
    return ChunkSources(
        _without(_read_messages(message_ids), withheld), _without(_read_summaries(summary_ids), withheld)
    )


def current_sources(summary_id: str) -> list[str]:
    """Return the summaries that a summary was made from, in their current versions."""
    return [source_id for (source_id,) in sql.rows(_STATEMENTS["current_sources"], [summary_id])]


def read_sources_replacing(
    summary_id: str, source_ids: Sequence[str], *, instead: Mapping[str, NewSummary], withheld: Collection[str]
) -> ChunkSources:
    """Read the messages of a summary and these summaries, or those in `instead`."""
    message_ids = list(SummaryMessage.objects.filter(summary_id=summary_id).values_list("message_id", flat=True))
    kept = _read_summaries([source_id for source_id in source_ids if source_id not in instead])
    made = [_of_summary(instead[source_id]) for source_id in source_ids if source_id in instead]
    return ChunkSources(_without(_read_messages(message_ids), withheld), [*_without(kept, withheld), *made])


def _without(records: Sequence[SourceRecord], withheld: Collection[str]) -> Sequence[SourceRecord]:
    """Return the sources; the texts of withheld ones are replaced."""
    if not withheld:
        return records
    return [
        each._replace(source=replace(each.source, text=WITHHELD)) if each.id in withheld else each for each in records
    ]


def text_of(summary_id: str) -> str:
    """Return a summary's text."""
    return Summary.objects.values_list("content", flat=True).get(pk=summary_id)


def sources_to_redo(source_ids: Sequence[str], *, only_waiting: bool, outdated: Collection[str]) -> list[str]:
    """Return those of the sources that must be regenerated: see `to_redo`."""
    wanted = to_redo("", only_waiting=only_waiting, outdated=outdated)
    ordered = Summary.objects.filter(wanted, pk__in=source_ids).order_by("first_seq").values_list("pk", "erased_by_id")
    return [source_id for source_id, erased in ordered if erased is None or has_text_left(source_id)]


def to_redo(prefix: str, *, only_waiting: bool, outdated: Collection[str]) -> Q:
    """Build the condition for summaries that must be regenerated.

    These are degraded, erased, quarantined or outdated. With `only_waiting`, a degraded summary is included only if it
    waits for a model. `prefix` is the lookup path to the summary.
    """
    degraded = Q(**{f"{prefix}is_degraded": True})
    if only_waiting:
        degraded &= Q(**{f"{prefix}quality__waits": True})
    without_text = Q(**{f"{prefix}erased_by__isnull": False}) | Q(**{f"{prefix}pk__in": _damaged_texts()})
    return degraded | without_text | Q(**{f"{prefix}pk__in": outdated})


def _damaged_texts() -> QuerySet[Summary, Any]:
    """Select quarantined summaries whose links to their sources are complete."""
    withheld = Quarantine.objects.filter(released_at__isnull=True, target__startswith="sum_").values("target")
    linked = Count("message_links__message", distinct=True) + Count("source_links__source", distinct=True)
    whole = Summary.objects.filter(pk__in=withheld, superseded_by__isnull=True).annotate(linked=linked)
    return whole.filter(linked=F("source_count")).values("pk")


def is_erased(summary_id: str) -> bool:
    return Summary.objects.filter(pk=summary_id, erased_by__isnull=False).exists()


def has_text_left(summary_id: str) -> bool:
    """Whether any message that the summary covers still has its text."""
    [[remains]] = sql.rows(_STATEMENTS["summary_remains"], [summary_id])
    return bool(remains)


def _read_messages(message_ids: Sequence[int]) -> list[SourceRecord]:
    if not message_ids:
        return []
    found = sql.rows(_STATEMENTS["source_messages"], [sql.array(message_ids)])
    cold = cold_texts(row[-4] for row in found)
    return [
        SourceRecord(
            message_id=message_id,
            source=SourceMessage(
                source_id=f"msg_{message_id}",
                seq=seq,
                role=role,
                text=ERASED if erased else _joined(_readable(content, added, message_id, block, cold), images),
                author=author or "",
                time=time,
            ),
            hash=digest.hex(),
            first_seq=seq,
            last_seq=seq,
            earliest_at=time,
            latest_at=time,
            tokens=tokens,
            file_ids=files,
        )
        for message_id, seq, role, author, content, time, tokens, digest, files, block, erased, images, added in found
    ]


def _joined(text: str, placeholders: Sequence[str]) -> str:
    return "\n".join([text, *placeholders] if text else placeholders)


def _readable(
    content: str, added: Sequence[tuple[str, str | None]], message_id: int, block_id: int | None, cold: ColdTexts | None
) -> str:
    """Return a message's text for a summarizer, without texts added by a host."""
    if block_id is not None and cold is not None:
        found = cold.message(block_id, message_id)
        content, added = found.content, [(id, found.parts.get(id, {}).get("text_content")) for id, _ in added]
    return readable_source(without_added(content, [text for _, text in added if text]))


def _read_summaries(summary_ids: Sequence[str]) -> list[SourceRecord]:
    return [_of_summary(row.as_record()) for row in Summary.objects.filter(pk__in=summary_ids)]


def _of_summary(summary: NewSummary) -> SourceRecord:
    """Convert a summary, stored or not written yet, to a source."""
    is_erased = isinstance(summary, SummaryRecord) and summary.erased_by_id is not None
    return SourceRecord(
        message_id=None,
        source=SourceSummary(
            source_id=summary.summary_id,
            depth=summary.depth,
            first_seq=summary.first_seq,
            last_seq=summary.last_seq,
            text=ERASED if is_erased else summary.content,
            earliest_at=summary.earliest_at,
            latest_at=summary.latest_at,
        ),
        hash=summary.summary_hash,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        earliest_at=summary.earliest_at,
        latest_at=summary.latest_at,
        tokens=summary.source_tokens,
        messages=summary.descendant_count,
        depth=summary.depth,
        file_ids=summary.file_ids,
        is_degraded=summary.is_degraded,
        is_waiting=summary.quality.get("waits") is True,
    )


def new_summary(
    sources: ChunkSources,
    accepted: Accepted,
    *,
    conversation_id: int,
    run_id: str,
    token_counter: str,
    supersedes_id: str | None,
) -> NewSummary:
    """Build the record of a new summary from its sources and the accepted text."""
    draft, records = accepted.draft, sources.records
    return NewSummary(
        summary_id=f"sum_{secrets.token_hex(8)}",
        conversation_id=conversation_id,
        kind=SummaryKind.LEAF if sources.depth == 0 else SummaryKind.CONDENSED,
        depth=sources.depth,
        content=draft.text,
        token_count=accepted.tokens,
        first_seq=min(each.first_seq for each in records),
        last_seq=max(each.last_seq for each in records),
        earliest_at=min(each.earliest_at for each in records),
        latest_at=max(each.latest_at for each in records),
        source_count=len(records),
        descendant_count=sum(each.messages for each in records),
        source_tokens=sum(each.tokens for each in records),
        level=accepted.level,
        model=draft.model,
        summary_hash=hashing.summary_hash(sources.hashes, draft.text).hex(),
        token_counter=token_counter,
        run_id=run_id,
        file_ids=tuple(sorted({file_id for each in records for file_id in each.file_ids})),
        quality=accepted.quality(
            degraded_sources=[each.id for each in records if each.is_degraded],
            sources_wait=any(each.is_waiting for each in records),
        ),
        retention=accepted.retention,
        is_degraded=accepted.lack is not None or any(each.is_degraded for each in records),
        supersedes_id=supersedes_id,
        prompt_hash=draft.prompt_hash,
        tokens_in=draft.tokens_in,
        tokens_out=draft.tokens_out,
        duration_ms=accepted.duration_ms,
    )
