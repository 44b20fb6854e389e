"""Admin tables of conversations, messages, summaries and files."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from conversations.admin_rows import RowsAdmin, RowsInline, links_to, page_in, page_of
from conversations.models import (
    AuditEntry,
    AuditHead,
    AuditLink,
    ColdBlock,
    ContextItem,
    Conversation,
    FileReference,
    HeadMove,
    JournalEntry,
    LargeFile,
    Message,
    MessagePart,
    Project,
    Quarantine,
    Summary,
    SummaryMessage,
    SummaryParent,
    Upload,
    UploadChunk,
    Workspace,
)

conversation = links_to("conversation", Conversation)
message = links_to("message", Message)
summary = links_to("summary", Summary)


def page_of_message(row: Message) -> str:
    """The URL of a message in the transcript."""
    return f"{page_of(row.conversation)}?seq={row.seq}#m{row.seq}"


def page_of_project(workspace: Workspace, project: Project | None, **filters: str) -> str:
    """The URL of a project's timeline, or of all sessions in the workspace."""
    named = {"project": project.name} if project else {}
    return f"{page_in(workspace, 'project')}?{urlencode(named | filters)}"


@admin.display(description="contents")
def _contents(row: Conversation) -> SafeString:
    """Links to the tables filtered by this conversation."""
    return format_html_join(
        " · ",
        '<a class="text-link" href="{}?conversation__conversation_id__exact={}">{}</a>',
        (
            (reverse(f"admin:conversations_{name}_changelist"), row.pk, label)
            for name, label in (("message", "messages"), ("summary", "summaries"), ("largefile", "files"))
        ),
    )


class ContextInline(RowsInline):
    """The items of a conversation's active context."""

    model = ContextItem
    verbose_name_plural = "active context"
    fields = ("ordinal", message, summary, "token_count", "created_at")


class SourceMessages(RowsInline):
    """The messages that a leaf was made from."""

    model = SummaryMessage
    verbose_name_plural = "source messages"
    fields = ("ordinal", message)


class SourceSummaries(RowsInline):
    """The summaries that a condensed summary was made from."""

    model = SummaryParent
    fk_name = "summary"
    verbose_name_plural = "source summaries"
    fields = ("ordinal", links_to("source", Summary))


class DerivedSummaries(RowsInline):
    """The condensed summaries that were made from a summary."""

    model = SummaryParent
    fk_name = "source"
    verbose_name_plural = "derived summaries"
    fields = ("ordinal", summary)


class SummariesOfMessage(RowsInline):
    """The leaves that were made from a message."""

    model = SummaryMessage
    verbose_name_plural = "summarized in"
    fields = ("ordinal", summary)


@admin.display(description="messages")
def _message_count(row: Conversation) -> int:
    return row.counters.message_count


admin.site.register(
    Conversation,
    RowsAdmin,
    list_display=("__str__", "workspace", _message_count, "total_tokens", "active_tokens", "updated_at"),
    list_select_related=("workspace",),
    search_fields=("session_id", "title"),
    ordering=("-conversation_id",),
    more_fields=(_contents,),
    inlines=(ContextInline,),
    view_on_site=lambda self, obj: page_of(obj),
)
admin.site.register(
    Project,
    RowsAdmin,
    list_display=("name", "workspace", "created_at"),
    list_select_related=("workspace",),
    search_fields=("name",),
    ordering=("name", "project_id"),
    view_on_site=lambda self, obj: page_of_project(obj.workspace, obj),
)
admin.site.register(
    HeadMove,
    RowsAdmin,
    list_display=("head_move_id", conversation, "number", "at_seq", "head_seq", "reason", "recorded_at"),
    ordering=("-head_move_id",),
)
admin.site.register(
    JournalEntry,
    RowsAdmin,
    list_display=("journal_entry_id", conversation, "subpath", "position", "uuid", "recorded_at"),
    search_fields=("uuid", "subpath"),
    ordering=("-journal_entry_id",),
)
admin.site.register(
    Message,
    RowsAdmin,
    long_texts=("content",),
    list_display=("__str__", conversation, "seq", "role", "token_count", "created_at"),
    list_filter=("role",),
    search_fields=("content",),
    search_help_text="An id, or words of a message",
    ordering=("-message_id",),
    inlines=(SummariesOfMessage,),
    view_on_site=lambda self, obj: page_of_message(obj),
)
admin.site.register(
    Summary,
    RowsAdmin,
    long_texts=("content",),
    list_display=("summary_id", conversation, "kind", "depth", "first_seq", "last_seq", "token_count", "level"),
    list_filter=("kind", "level", "is_degraded"),
    search_fields=("content",),
    search_help_text="An id, or words of a summary",
    ordering=("-created_at", "summary_id"),
    inlines=(SourceMessages, SourceSummaries, DerivedSummaries),
    view_on_site=lambda self, obj: f"{page_of(obj.conversation, 'lineage')}?node={obj.summary_id}",
)
admin.site.register(
    LargeFile,
    RowsAdmin,
    long_texts=("exploration_summary",),
    list_display=("file_id", conversation, "file_name", "mime_type", "byte_size", "created_at"),
    search_fields=("file_name",),
    ordering=("-created_at", "file_id"),
    view_on_site=lambda self, obj: page_in(obj.conversation.workspace, "file", file_id=obj.file_id),
)
admin.site.register(
    Workspace,
    RowsAdmin,
    list_display=("name", "workspace_id", "created_at", "cold_after_days"),
    search_fields=("name",),
    view_on_site=lambda self, obj: page_in(obj, "overview"),
)
admin.site.register(
    MessagePart,
    RowsAdmin,
    long_texts=("text_content", "tool_output", "tool_error", "file_url", "subtask_prompt"),
    list_display=("part_id", message, "ordinal", "part_type", "tool_name"),
    list_filter=("part_type",),
    search_fields=("tool_name",),
    ordering=("-message_id", "ordinal"),
    view_on_site=lambda self, obj: page_of_message(obj.message),
)
admin.site.register(
    FileReference,
    RowsAdmin,
    list_display=("reference_id", message, links_to("file", LargeFile)),
    search_fields=("file__file_id",),
    view_on_site=lambda self, obj: page_of_message(obj.message),
)
admin.site.register(
    Upload,
    RowsAdmin,
    list_display=("upload_id", conversation, "file_name", "byte_size", "created_at", "touched_at"),
    search_fields=("file_name",),
    ordering=("-touched_at",),
)
admin.site.register(
    UploadChunk,
    RowsAdmin,
    list_display=("upload_chunk_id", links_to("upload", Upload), "number"),
    search_fields=("upload__upload_id",),
)
admin.site.register(
    AuditEntry,
    RowsAdmin,
    list_display=("audit_id", "recorded_at", "actor", "act", "target", conversation),
    search_fields=("actor", "act", "target"),
)
admin.site.register(AuditLink, RowsAdmin, list_display=("number", links_to("entry", AuditEntry)))
admin.site.register(AuditHead, RowsAdmin, list_display=("head_id", "number"))
admin.site.register(
    ColdBlock,
    RowsAdmin,
    list_display=("cold_block_id", conversation, "first_seq", "last_seq", "message_count", "bytes_before"),
    search_fields=("conversation__session_id",),
)
admin.site.register(
    Quarantine,
    RowsAdmin,
    list_display=("quarantine_id", "target", conversation, "created_at", "released_at"),
    list_filter=(("released_at", admin.EmptyFieldListFilter),),
    search_fields=("target", "reason"),
    view_on_site=lambda self, obj: page_in(obj.conversation.workspace, "quarantine"),
)
