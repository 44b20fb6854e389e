"""Describe the item with a given id, and how many tokens opening it costs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from compaction.history.history_sources import withheld_sessions
from compaction.history.models import SessionSummary
from compaction.history.types import HistoryKind
from compaction.llm.embeddings import EmbedderPolicy
from compaction.models import CompactionRun
from compaction.sources import withheld_in
from conversations.errors import NotFound
from conversations.models import Conversation, LargeFile, Message, Summary
from conversations.scope import Scope, conversation_named
from conversations.sql import load, rows, snapshot
from conversations.types import Level, Role, SummaryKind
from retrieval.describing.summary_outlines import MOST_IN_MANIFEST, STATEMENTS, in_order, outline, way_up
from retrieval.ids import Named, named, names_in
from retrieval.semantic.embedders import PROGRESS
from retrieval.types import Description, ItemKind, MessageSpan

MOST_FILES = 50
_RELATIONS = load("retrieval/describing/sessions.sql")["relations"]
_FILE_QUARANTINED = "SELECT reason FROM quarantines WHERE target = %s AND released_at IS NULL"
# The reason shown for a summary made from a quarantined message, and for a message with a quarantined part.
_WITHHELD = "It repeats words that were quarantined after it was made, or one of its parts is quarantined."
_SESSION_WITHHELD = (
    "This summary was made from content that is quarantined now; its text is withheld until it is regenerated."
)

# The fields that a description copies from the row.
_OF_SESSION = (
    "conversation_id", "created_at", "token_count", "first_seq", "last_seq", "earliest_at", "latest_at", "depth",
    "model", "is_degraded", "quality",
)  # fmt: skip
_OF_SUMMARY = (*_OF_SESSION, "source_tokens", "content", "run_id")
_OF_MESSAGE = ("conversation_id", "created_at", "token_count", "author")
_OF_FILE = (
    "conversation_id", "created_at", "file_name", "mime_type", "byte_size", "exploration_summary", "content_hash",
)  # fmt: skip


def describe(id: str, *, scope: Scope) -> Description:
    """See `RetrievalEngine.describe`: three queries for a summary or a message."""
    described = _found(id, scope)
    if described.id not in withheld_in([described.conversation_id]):
        return described
    withheld: dict[str, Any] = dict.fromkeys(("content", "author", "file_name", "exploration_summary"))
    return replace(described, **withheld, quarantined=described.quarantined or _WITHHELD)


def _found(id: str, scope: Scope) -> Description:
    found = named(id)
    if found is not None and found.kind is not ItemKind.CONVERSATION:
        return _described(found, scope)
    with suppress(NotFound):
        return _conversation(scope.conversation(conversation_named(id, scope=scope)))
    if inside := names_in(id):
        return _described(inside[0], scope)
    raise NotFound(
        f"{id[:80]!r} is no id that can be described: ids begin with sum_, msg_, file_, run_, conv_ or ses_, and a "
        "conversation can be named by its session. For ids that begin with map_, use lcm_map_status.",
    )


def _described(found: Named, scope: Scope) -> Description:
    match found.kind:
        case ItemKind.SUMMARY:
            return _summary(scope.summary(found.id))
        case ItemKind.FILE:
            return _file(scope.file(found.id))
        case ItemKind.RUN:
            return _run(found.id, scope=scope)
        case ItemKind.CONVERSATION:
            return _conversation(scope.conversation(found.number))
        case ItemKind.MESSAGE:
            return _message(scope.message(found.number))
        case ItemKind.SESSION_SUMMARY:
            return _session(session_summary(scope, found))


def _same(row: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _summary(summary: Summary) -> Description:
    fetched = rows(STATEMENTS["summary"], {"summary_id": summary.summary_id, "most": MOST_IN_MANIFEST})
    outlines = [outline(row[:-2]) for row in fetched]
    itself = next(each for each in outlines if each.distance == 0)
    spans, quarantined = fetched[0][-2:]
    level = Level(summary.level)
    below = in_order(each for each in outlines if each.distance > 0)
    above = way_up(each for each in outlines if each.distance < 0)
    return Description(
        id=summary.summary_id,
        kind=ItemKind.SUMMARY,
        **_same(summary, _OF_SUMMARY),
        active=itself.active,
        summary_kind=SummaryKind(summary.kind),
        level=level,
        confidence=level.confidence,
        confidence_reason=level.confidence_reason,
        opening_tokens=itself.opening_tokens,
        message_count=summary.descendant_count,
        sources=tuple(each.summary_id for each in below if each.distance == 1),
        source_messages=tuple(MessageSpan(*span) for span in spans or ()),
        derived=tuple(each.summary_id for each in above if each.distance == -1),
        held_by=tuple(above),
        manifest=tuple(below[:MOST_IN_MANIFEST]),
        manifest_complete=len(below) <= MOST_IN_MANIFEST,
        file_ids=tuple(summary.file_ids),
        supersedes=summary.supersedes_id,
        superseded_by=itself.superseded_by,
        erased=summary.erased_by_id is not None,
        quarantined=quarantined,
    )


def session_summary(scope: Scope, found: Named) -> SessionSummary:
    """The row of a session, arc or epoch summary; raises NotFound."""
    return scope.find(SessionSummary.objects.readable(), "session summary", found.id, summary_id=found.id)


def _session(summary: SessionSummary) -> Description:
    """Describe a session, arc or epoch summary, with its sources and derived items."""
    [relations] = rows(_RELATIONS, {"summary_id": summary.pk})
    project, superseded_by, sources, spans, derived, messages, tokens = relations
    hidden = withheld_sessions(summary.workspace_id)
    is_erased = summary.erased_by_id is not None
    level = Level(summary.level)
    return Description(
        id=summary.pk,
        kind=ItemKind.SESSION_SUMMARY,
        **_same(summary, _OF_SESSION),
        history_kind=HistoryKind(summary.kind),
        project=project,
        active=superseded_by is None,
        level=level,
        confidence=level.confidence,
        confidence_reason=level.confidence_reason,
        opening_tokens=tokens,
        message_count=messages,
        sources=tuple(sources),
        source_messages=tuple(MessageSpan(*span) for span in spans),
        derived=tuple(derived),
        content=None if is_erased or summary.pk in hidden else summary.content,
        supersedes=summary.supersedes_id,
        superseded_by=superseded_by,
        erased=is_erased,
        quarantined=_SESSION_WITHHELD if summary.pk in hidden else None,
    )


def _message(message: Message) -> Description:
    fetched = rows(STATEMENTS["message"], {"message_id": message.message_id, "most": MOST_IN_MANIFEST})
    held_by = way_up(outline(row[:-4]) for row in fetched if row[0] is not None)
    part_types, quarantined, file_ids, active = fetched[0][-4:]
    return Description(
        id=f"msg_{message.message_id}",
        kind=ItemKind.MESSAGE,
        **_same(message, _OF_MESSAGE),
        active=active,
        first_seq=message.seq,
        last_seq=message.seq,
        derived=tuple(each.summary_id for each in held_by if each.distance == -1),
        role=Role(message.role),
        part_types=tuple(part_types or ()),
        held_by=tuple(held_by),
        quarantined=quarantined,
        file_ids=tuple(file_ids),
        content_hash=bytes(message.content_hash).hex(),
        erased=message.erased_by_id is not None,
    )


def _file(file: LargeFile) -> Description:
    needing = rows(STATEMENTS["needing_file"], {"file_id": file.file_id, "most": MOST_IN_MANIFEST})
    return Description(
        id=file.file_id,
        kind=ItemKind.FILE,
        **_same(file.as_record(), _OF_FILE),
        needed_by=tuple(id for (id,) in needing),
        erased=file.erased_by_id is not None,
        quarantined=next((reason for (reason,) in rows(_FILE_QUARANTINED, [file.file_id])), None),
    )


def _run(run_id: str, *, scope: Scope) -> Description:
    """Describe a compaction run: its outcome, and the summaries it made."""
    run = scope.find(CompactionRun.objects.all(), "run", run_id, run_id=run_id)
    values = {"conversation_id": run.conversation_id, "run_id": run_id, "most": MOST_IN_MANIFEST}
    made = [outline(row) for row in rows(STATEMENTS["made_by_run"], values)]
    return Description(
        id=run.run_id,
        kind=ItemKind.RUN,
        conversation_id=run.conversation_id,
        created_at=run.started_at,
        first_seq=min((each.first_seq for each in made), default=None),
        last_seq=max((each.last_seq for each in made), default=None),
        manifest=tuple(made[:MOST_IN_MANIFEST]),
        manifest_complete=len(made) <= MOST_IN_MANIFEST,
        run=run.as_record(),
        summary_count=run.leaf_summaries + run.condensed_summaries + run.redone_summaries,
    )


def _conversation(conversation: Conversation) -> Description:
    """Describe a conversation: its totals, its active context and its last run."""
    number = {"conversation_id": conversation.conversation_id}
    with snapshot():
        # The row is read again in this snapshot, so that its counters agree with the other rows.
        conversation.refresh_from_db()
        shown = [outline(row) for row in rows(STATEMENTS["active_summaries"], {**number, "most": MOST_IN_MANIFEST})]
        raw = rows(STATEMENTS["raw_spans"], {**number, "from": 0, "upto": conversation.next_seq})
        [[earliest_at, latest_at, summary_count, depth]] = rows(STATEMENTS["figures_of_conversation"], number)
        file_ids = [row[0] for row in rows(STATEMENTS["files_of_conversation"], {**number, "most": MOST_FILES})]
        last_run = CompactionRun.objects.filter(conversation=conversation).order_by("-started_at").first()
    record = conversation.as_record()
    return Description(
        id=f"conv_{conversation.conversation_id}",
        kind=ItemKind.CONVERSATION,
        conversation_id=conversation.conversation_id,
        created_at=conversation.created_at,
        token_count=record.counters.active_tokens,
        first_seq=1 if record.counters.message_count else None,
        last_seq=record.counters.message_count or None,
        earliest_at=earliest_at,
        latest_at=latest_at,
        depth=depth,
        source_tokens=record.counters.total_tokens,
        message_count=record.counters.message_count,
        manifest=tuple(shown[:MOST_IN_MANIFEST]),
        manifest_complete=len(shown) <= MOST_IN_MANIFEST,
        file_ids=tuple(file_ids),
        conversation=record,
        run_id=last_run.run_id if last_run is not None else None,
        run=last_run.as_record() if last_run is not None else None,
        raw_messages=tuple(MessageSpan(*row) for row in raw),
        summary_count=summary_count,
        embedded_messages=_embedded_messages(conversation) if EmbedderPolicy.from_settings().embedder_url else None,
    )


def _embedded_messages(conversation: Conversation) -> int | None:
    found = rows(PROGRESS["embedded_of_conversation"], {"conversation_id": conversation.conversation_id})
    return found[0][0] if found else None
