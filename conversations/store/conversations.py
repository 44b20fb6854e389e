"""The store's main service: conversations, summaries and the active context."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Now

from conversations.audit import Act, AuditLog
from conversations.content.flattening import require_metadata
from conversations.content.lossless_values import MOST_LEVELS, as_json, is_plain, is_storable, require_names
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import Conversation, Project, Workspace
from conversations.models.columns import record_of
from conversations.policy import check_overrides
from conversations.sql import array, first_row
from conversations.store.pages import Page, fitting_conversations, with_first_prompts
from conversations.store.part_rows import part_row_of
from conversations.store.spec_api import SpecificationStore, ordinal_of
from conversations.types import (
    ContextItemRecord,
    ContextItemType,
    ConversationRecord,
    NewPart,
    NewSummary,
    OpenedConversation,
    ParentLink,
)


def plain_metadata(metadata: Mapping[str, Any], *, most: int) -> dict[str, Any]:
    """Return the metadata as a dict; Invalid if jsonb cannot hold it exactly."""
    if not is_plain(require_metadata(metadata, most=most)):
        raise Invalid(f"metadata must not contain NUL or lone surrogates, nor have more than {MOST_LEVELS} levels.")
    return dict(metadata)


def value_hash(value: Any) -> str:
    """Hash a value: the SHA-256 of its JSON with sorted keys."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


_WRITE_SUMMARY = "SELECT items, ordinal FROM lcm_write_summary(%s, %s, %s::bigint[], %s::text[], %s, %s)"


@dataclass(frozen=True)
class ConversationStore(SpecificationStore):
    """Stores conversations of one workspace or, for workers, of all workspaces."""

    @transaction.atomic
    def open_conversation(
        self,
        *,
        session_id: str,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
        project: str | None = None,
        parent_session_id: str | None = None,
        parent_link: ParentLink | None = None,
    ) -> OpenedConversation:
        """Get the conversation with this session_id in the workspace, or create it.

        Title, metadata and overrides apply only to a new conversation. An existing one keeps its own values, and
        `left_as_it_was` names the given values that differ. A project is created by its first use. Project and parent
        are also set on an existing conversation that has none. Raises NotFound if there is no such parent; Conflict
        `other_project` or `other_parent` if the conversation already has another project or parent.
        """
        if self.scope.workspace_id is None:
            raise Invalid("A conversation belongs to a workspace; name a workspace.")
        require_names(session_id=session_id, title=title)
        given = {
            "title": title,
            "metadata": plain_metadata(metadata or {}, most=self.policy.max_metadata_bytes),
            "overrides": check_overrides(overrides or {}),
        }
        conversation, created = Conversation.objects.get_or_create(
            workspace_id=self.scope.workspace_id, session_id=session_id, defaults=given
        )
        conversation.refresh_from_db()
        _place(conversation, project=project, parent_session_id=parent_session_id, parent_link=parent_link)
        wanted = {"title": title, "metadata": metadata, "overrides": overrides}
        left = [name for name in wanted if wanted[name] is not None and given[name] != getattr(conversation, name)]
        return OpenedConversation(**vars(conversation.as_record()), created=created, left_as_it_was=tuple(left))

    def get_conversation(self, *, conversation_id: int) -> ConversationRecord:
        """Return a conversation; raises NotFound."""
        return self.scope.conversation(conversation_id).as_record()

    def find_conversation(self, *, session_id: str) -> ConversationRecord:
        """Return the conversation with this session_id; raises NotFound."""
        rows = self.scope.narrow(Conversation.objects.select_related("project"))
        found = rows.filter(session_id=session_id).first() if is_storable(session_id) else None
        if found is None:
            raise NotFound(f"There is no conversation {session_id[:80]!r} that you may see.")
        return found.as_record()

    def list_conversations(
        self,
        *,
        project: str | None = None,
        session_prefix: str | None = None,
        has_metadata: Mapping[str, Any] | None = None,
        updated_since: datetime | None = None,
        newest_first: bool = False,
        after_id: int | None = None,
        limit: int = 100,
    ) -> list[ConversationRecord]:
        """List conversations with their titles and counters, oldest first.

        A conversation without a title has the first line of its first prompt.
        Filter them by project, prefix of the session_id, values in the metadata, and time of the last change or append.
        A page has 8 MiB at most; its cursor continues the list. To find conversations by their messages, use grep.
        """
        if not all(is_plain(value) for value in (project, session_prefix, has_metadata)):
            # No row has a value that a column cannot hold.
            return Page()
        ids, there = fitting_conversations(
            newest_first=newest_first,
            workspace_id=self.scope.workspace_id,
            after_id=after_id,
            project=project,
            session_prefix=session_prefix,
            metadata=None if has_metadata is None else as_json(has_metadata),
            updated_since=updated_since,
            limit=limit,
        )
        found = Conversation.objects.select_related("project").filter(pk__in=ids)
        in_order = found.order_by("-pk" if newest_first else "pk")
        listed = with_first_prompts(conversation.as_record() for conversation in in_order)
        return Page(listed, more=len(ids) < there)

    @transaction.atomic
    def change_conversation(
        self, *, conversation_id: int, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> ConversationRecord:
        """Replace a conversation's title, its metadata, or both.

        An omitted value stays. The audit log records the changed fields, with the hashes of old and new values.
        """
        conversation = self.scope.conversation(conversation_id, locked=True)
        require_names(title=title)
        given = {
            "title": title,
            "metadata": None if metadata is None else plain_metadata(metadata, most=self.policy.max_metadata_bytes),
        }
        changed = {
            name: value for name, value in given.items() if value is not None and value != getattr(conversation, name)
        }
        if changed:
            hashes = {
                name: [value_hash(getattr(conversation, name)), value_hash(value)] for name, value in changed.items()
            }
            AuditLog(self.scope).record(
                Act.CHANGE_CONVERSATION,
                workspace_id=conversation.workspace_id,
                conversation_id=conversation.pk,
                target=f"conv_{conversation.pk}",
                detail={"sha256": hashes},
            )
            for name, value in changed.items():
                setattr(conversation, name, value)
            _save_change(conversation, *changed)
        return conversation.as_record()

    @transaction.atomic
    def configure_conversation(self, *, conversation_id: int, overrides: Mapping[str, Any]) -> ConversationRecord:
        """Replace the conversation's own settings; raises NotFound, Invalid."""
        conversation = self.scope.conversation(conversation_id, locked=True)
        conversation.overrides = check_overrides(overrides)
        _save_change(conversation, "overrides")
        return conversation.as_record()

    @transaction.atomic(savepoint=False)
    def write_summary(
        self,
        *,
        summary: NewSummary,
        message_ids: Sequence[int],
        source_ids: Sequence[str],
        item_tokens: int | None,
        mark: NewPart,
    ) -> int | None:
        """Write a finished summary with its lineage, and put it into the context.

        In the context, the summary is an item of `item_tokens`, and replaces its sources or the summary that it
        supersedes. If `item_tokens` is None, the context does not change. The part `mark` is added to the last message
        that the summary covers. Returns the summary's ordinal in the context. Raises Conflict, and writes nothing,
        unless all items that it replaces are still in the context.
        """
        if self.scope.workspace_id is not None:
            self.scope.conversation(summary.conversation_id)
        written = first_row(
            _WRITE_SUMMARY,
            (
                summary.conversation_id,
                json.dumps(vars(summary), default=str),
                array(message_ids),
                list(source_ids),
                item_tokens,
                as_json(part_row_of(mark)),
            ),
        )
        if item_tokens is None:
            return None
        return ordinal_of(written, expected=1 if summary.supersedes_id else len(message_ids) + len(source_ids))

    def get_context_items(
        self, *, conversation_id: int, after_ordinal: int | None = None, limit: int = 10_000
    ) -> list[ContextItemRecord]:
        """List the items of the active context, in order."""
        conversation = self.scope.conversation(conversation_id)
        rows = conversation.context_items.order_by("ordinal")
        if after_ordinal is not None:
            rows = rows.filter(ordinal__gt=after_ordinal)
        found = list(rows[: limit + 1])
        items = [
            record_of(ContextItemRecord, item, item_type=ContextItemType(item.item_type)) for item in found[:limit]
        ]
        return Page(items, more=len(found) > limit)


def _save_change(conversation: Conversation, *columns: str) -> None:
    """Save these columns, with the time of the change."""
    # The database's clock, and never decreasing: messages that are recorded later do not get an earlier time.
    conversation.updated_at = Greatest(F("updated_at"), Now())
    conversation.save(update_fields=[*columns, "updated_at"])
    conversation.refresh_from_db(fields=["updated_at"])


def _place(
    conversation: Conversation, *, project: str | None, parent_session_id: str | None, parent_link: ParentLink | None
) -> None:
    """Set the given project and parent; Conflict if the conversation has others.

    A project is created when it is first used. Without `parent_link`, the conversation is its parent's subagent. Raises
    NotFound if the workspace has no such parent, and Invalid for a cycle or for a link without a parent.
    """
    require_names(project=project, parent_session_id=parent_session_id)
    if parent_link is not None and parent_session_id is None:
        raise Invalid("parent_link needs a parent_session_id; give both.")
    if project is None and parent_session_id is None:
        return
    # The row is locked, so that one of two callers with different values is refused.
    held = Conversation.objects.select_for_update(no_key=True, of=("self",)).select_related("project", "parent")
    now = held.get(pk=conversation.pk)
    before = now.project_id, now.parent_id
    if project is not None:
        _set_project(now, project)
    if parent_session_id is not None:
        _set_parent(now, parent_session_id, parent_link)
    if (now.project_id, now.parent_id) != before:
        _save_change(now, "project", "parent", "parent_link")
        conversation.refresh_from_db()


def _set_project(conversation: Conversation, name: str) -> None:
    if conversation.project is not None and conversation.project.name != name:
        raise Conflict(
            f"This conversation already belongs to the project {conversation.project.name[:80]!r}. Omit `project`, or"
            " give that one.",
            code="other_project",
        )
    conversation.project, _ = Project.objects.get_or_create(workspace_id=conversation.workspace_id, name=name)


def _set_parent(conversation: Conversation, session_id: str, given: ParentLink | None) -> None:
    # One at a time in a workspace: two conversations could become the parents of each other.
    Workspace.objects.select_for_update(no_key=True).get(pk=conversation.workspace_id)
    link = ParentLink(given or conversation.parent_link or ParentLink.SUBAGENT)
    parent = Conversation.objects.filter(workspace_id=conversation.workspace_id, session_id=session_id).first()
    if parent is None:
        raise NotFound(f"There is no conversation {session_id[:80]!r} that you may see.")
    if conversation.parent_id is not None and (conversation.parent_id, conversation.parent_link) != (parent.pk, link):
        raise Conflict("This conversation already has another parent. Omit `parent_session_id`.", code="other_parent")
    above: Conversation | None = parent
    line: set[int] = set()
    while above is not None and above.pk not in line:
        line.add(above.pk)
        above = above.parent
    if conversation.pk in line:
        raise Invalid("A conversation cannot be its own parent, directly or through others.")
    conversation.parent, conversation.parent_link = parent, link
