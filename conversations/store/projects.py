"""Set the project and the parent of conversations; neither can change later."""

from __future__ import annotations

from django.db.models import F
from django.db.models.functions import Greatest, Now

from conversations.content.lossless_values import require_names
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import Conversation, Project
from conversations.types import ParentLink


def place_conversation(
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
    if project is not None:
        _set_project(now, project)
    if parent_session_id is not None:
        _set_parent(now, parent_session_id, parent_link)
    now.updated_at = Greatest(F("updated_at"), Now())
    now.save(update_fields=["project", "parent", "parent_link", "updated_at"])
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
    link = ParentLink(given or conversation.parent_link or ParentLink.SUBAGENT)
    parent = Conversation.objects.filter(workspace_id=conversation.workspace_id, session_id=session_id).first()
    if parent is None:
        raise NotFound(f"There is no conversation {session_id[:80]!r} that you may see.")
    if conversation.parent_id is not None and (conversation.parent_id, conversation.parent_link) != (parent.pk, link):
        raise Conflict("This conversation already has another parent. Omit `parent_session_id`.", code="other_parent")
    above: Conversation | None = parent
    while above is not None:
        if above.pk == conversation.pk:
            raise Invalid("A conversation cannot be its own parent, directly or through others.")
        above = above.parent
    conversation.parent, conversation.parent_link = parent, link
