"""Create projects with sessions, arcs and epochs from exactly what a test names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from compaction.history.models import SessionSummary, SessionSummaryChild, SessionSummaryMemory
from compaction.history.types import HistoryKind
from conversations.content import hashing
from conversations.models import ContextItem, Conversation, Message, Project, Summary, Workspace
from conversations.types import ConversationRecord, Level
from tests.factories import a_conversation, a_store, a_workspace

_numbers = itertools.count(1)
_KINDS = tuple(HistoryKind)


def a_project(name: str = "harbour", workspace: Workspace | None = None) -> Project:
    return Project.objects.get_or_create(workspace=workspace or a_workspace(), name=name)[0]


def a_session(project: Project | None, *texts: str, **options: Any) -> ConversationRecord:
    """A conversation of a project with these texts."""
    workspace = None if project is None else project.workspace
    conversation = a_conversation(*(texts or ("hello", "how are you?")), workspace=workspace, **options)
    Conversation.objects.filter(pk=conversation.conversation_id).update(project=project)
    return conversation


@transaction.atomic
def a_session_summary(
    conversation_id: int, content: str | None = None, *, supersedes: SessionSummary | None = None, **values: Any
) -> SessionSummary:
    """A session summary, made from the conversation's current active context."""
    items = list(ContextItem.objects.filter(conversation_id=conversation_id).order_by("ordinal"))
    messages = Message.objects.in_bulk([item.message_id for item in items if item.message_id])
    summaries = Summary.objects.in_bulk([item.summary_id for item in items if item.summary_id])
    sources = [messages.get(item.message_id) or summaries[item.summary_id] for item in items]
    said = Message.objects.filter(conversation_id=conversation_id).order_by("seq")
    conversation = Conversation.objects.get(pk=conversation_id)
    made = _summary(
        conversation.workspace,
        conversation.project,
        content or f"What was done in session {next(_numbers)}.",
        hashes=[bytes(getattr(each, "content_hash", None) or each.summary_hash).hex() for each in sources],
        depth=0,
        conversation=conversation,
        first_seq=1,
        last_seq=conversation.next_seq - 1,
        earliest_at=said[0].created_at,
        latest_at=said.reverse()[0].created_at,
        supersedes=supersedes,
        **values,
    )
    SessionSummaryMemory.objects.bulk_create(
        SessionSummaryMemory(
            summary=made,
            ordinal=ordinal,
            item_type=item.item_type,
            message_id=item.message_id,
            memory_summary_id=item.summary_id,
        )
        for ordinal, item in enumerate(items)
    )
    return made


@transaction.atomic
def a_summary_over(children: Sequence[SessionSummary], content: str | None = None, **values: Any) -> SessionSummary:
    """An arc summary of these sessions, or an epoch summary of these arcs."""
    made = _summary(
        children[0].workspace,
        children[0].project,
        content or f"What went on in stretch {next(_numbers)}.",
        hashes=[bytes(child.summary_hash).hex() for child in children],
        depth=children[0].depth + 1,
        earliest_at=min(child.earliest_at for child in children),
        latest_at=max(child.latest_at for child in children),
        **values,
    )
    for ordinal, child in enumerate(children):
        SessionSummaryChild.objects.create(parent=made, child=child, ordinal=ordinal)
    return made


def _summary(
    workspace: Workspace, project: Project | None, content: str, *, hashes: Sequence[str], depth: int, **values: Any
) -> SessionSummary:
    tokens = a_store(workspace).tokens
    level = values.pop("level", Level.NORMAL)
    return SessionSummary.objects.create(
        summary_id=f"ses_{next(_numbers):016x}",
        workspace=workspace,
        project=project,
        kind=_KINDS[depth],
        depth=depth,
        content=content,
        token_count=tokens.count(content),
        token_counter=tokens.name,
        level=level,
        confidence=level.confidence,
        model="by hand",
        summary_hash=hashing.summary_hash(hashes, content),
        **values,
    )
