"""The store in the admin: all that was said and what was made of it, to be looked at and never touched."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from conversations.admin_rows import RowsAdmin, column, link_to, page_of
from conversations.models import (
    AuditEntry,
    AuditHead,
    AuditLink,
    ColdBlock,
    ContextItem,
    Conversation,
    FileReference,
    LargeFile,
    Message,
    MessagePart,
    Quarantine,
    Summary,
    SummaryMessage,
    SummaryParent,
    Upload,
    UploadChunk,
    Workspace,
)

# Of a context, or of a summary's sources, so many are listed; the dashboard shows all.
MOST_LISTED = 200

conversation = column("conversation", "conversation", of=lambda row: link_to(Conversation, row.conversation_id))
message = column("message", "message", of=lambda row: link_to(Message, row.message_id))


@admin.register(Workspace)
class WorkspaceAdmin(RowsAdmin):
    list_display = ("name", "workspace_id", "created_at", "cold_after_days")
    search_fields = ("name",)
    ordering = ("name",)

    def view_on_site(self, obj: Workspace) -> str:
        return reverse("overview", kwargs={"workspace": obj.name})


@admin.register(Conversation)
class ConversationAdmin(RowsAdmin):
    list_display = ("__str__", "workspace", "message_count", "total_tokens", "active_tokens", "updated_at")
    list_select_related = ("workspace",)
    search_fields = ("session_id", "title")
    ordering = ("-conversation_id",)

    @admin.display(description="messages")
    def message_count(self, obj: Conversation) -> int:
        return obj.counters.message_count

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [*super().get_fields(request, obj), column("holds", "holds", of=_rows_of), _context]

    def view_on_site(self, obj: Conversation) -> str:
        return page_of(obj)


@admin.register(Message)
class MessageAdmin(RowsAdmin):
    long_texts = ("content",)
    list_display = ("__str__", conversation, "seq", "role", "token_count", "created_at")
    list_filter = ("role",)
    search_fields = ("content",)
    search_help_text = "An id, or words of what was said"
    ordering = ("-message_id",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [*super().get_fields(request, obj), _summarized]

    def view_on_site(self, obj: Message) -> str:
        return f"{page_of(obj.conversation)}?seq={obj.seq}#m{obj.seq}"


@admin.register(MessagePart)
class MessagePartAdmin(RowsAdmin):
    long_texts = ("text_content", "tool_output", "tool_error", "file_url", "subtask_prompt")
    list_display = ("part_id", message, "ordinal", "part_type", "tool_name")
    list_filter = ("part_type",)
    search_fields = ("tool_name",)
    ordering = ("-message_id", "ordinal")


@admin.register(Summary)
class SummaryAdmin(RowsAdmin):
    long_texts = ("content",)
    list_display = ("summary_id", conversation, "kind", "depth", "first_seq", "last_seq", "token_count", "level")
    list_filter = ("kind", "level", "is_degraded")
    search_fields = ("content",)
    search_help_text = "An id, or words of a summary"
    ordering = ("-created_at", "summary_id")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [*super().get_fields(request, obj), _sources, _derived]

    def view_on_site(self, obj: Summary) -> str:
        return f"{page_of(obj.conversation, 'lineage')}?summary={obj.summary_id}"


@admin.register(LargeFile)
class LargeFileAdmin(RowsAdmin):
    long_texts = ("exploration_summary",)
    list_display = ("file_id", conversation, "file_name", "mime_type", "byte_size", "created_at")
    search_fields = ("file_name",)
    ordering = ("-created_at", "file_id")

    def view_on_site(self, obj: LargeFile) -> str:
        return reverse("file", kwargs={"workspace": obj.conversation.workspace.name, "file_id": obj.file_id})


@admin.register(FileReference)
class FileReferenceAdmin(RowsAdmin):
    list_display = ("reference_id", message, column("file", "file", of=lambda row: link_to(LargeFile, row.file_id)))
    ordering = ("-reference_id",)
    search_fields = ("file__file_id",)


@admin.register(Upload)
class UploadAdmin(RowsAdmin):
    list_display = ("upload_id", conversation, "file_name", "byte_size", "created_at", "touched_at")
    search_fields = ("file_name",)
    ordering = ("-touched_at",)


@admin.register(UploadChunk)
class UploadChunkAdmin(RowsAdmin):
    list_display = (
        "upload_chunk_id",
        column("upload", "upload", of=lambda row: link_to(Upload, row.upload_id)),
        "number",
    )
    search_fields = ("upload__upload_id",)
    ordering = ("-upload_chunk_id",)


@admin.register(AuditEntry)
class AuditEntryAdmin(RowsAdmin):
    list_display = ("audit_id", "recorded_at", "actor", "act", "target", conversation)
    search_fields = ("actor", "act", "target")
    ordering = ("-audit_id",)


@admin.register(AuditLink)
class AuditLinkAdmin(RowsAdmin):
    list_display = ("number", column("act", "entry", of=lambda row: link_to(AuditEntry, row.entry_id)))
    ordering = ("-number",)


@admin.register(AuditHead)
class AuditHeadAdmin(RowsAdmin):
    list_display = ("head_id", "number")


@admin.register(ColdBlock)
class ColdBlockAdmin(RowsAdmin):
    list_display = ("cold_block_id", conversation, "first_seq", "last_seq", "message_count", "bytes_before")
    search_fields = ("conversation__session_id",)
    ordering = ("-cold_block_id",)


@admin.register(Quarantine)
class QuarantineAdmin(RowsAdmin):
    list_display = ("quarantine_id", "target", conversation, "created_at", "released_at")
    list_filter = (("released_at", admin.EmptyFieldListFilter),)
    search_fields = ("target", "reason")
    ordering = ("-quarantine_id",)


def _rows_of(row: Conversation) -> SafeString:
    """The lists of what belongs to a conversation."""
    return format_html_join(
        " · ",
        '<a class="text-link" href="{}?conversation__conversation_id__exact={}">{}</a>',
        (
            (reverse(f"admin:conversations_{name}_changelist"), row.pk, label)
            for name, label in (("message", "messages"), ("summary", "summaries"), ("largefile", "files"))
        ),
    )


@admin.display(description="context")
def _context(row: Conversation) -> SafeString | str:
    """What the model sees: a table with two columns as its key has no pages of its own here."""
    items = ContextItem.objects.filter(conversation_id=row.pk).order_by("ordinal")
    return _listed(
        link_to(Message, each.message_id) if each.message_id else link_to(Summary, each.summary_id)
        for each in items[: MOST_LISTED + 1]
    )


@admin.display(description="summarized in")
def _summarized(row: Message) -> SafeString | str:
    links = SummaryMessage.objects.filter(message_id=row.pk).order_by("summary_id")
    return _listed(link_to(Summary, key) for key in links.values_list("summary_id", flat=True)[: MOST_LISTED + 1])


@admin.display(description="made from")
def _sources(row: Summary) -> SafeString | str:
    said = SummaryMessage.objects.filter(summary_id=row.pk).order_by("ordinal").values_list("message_id", flat=True)
    made = SummaryParent.objects.filter(summary_id=row.pk).order_by("ordinal").values_list("source_id", flat=True)
    return _listed(
        [
            *(link_to(Message, key) for key in said[: MOST_LISTED + 1]),
            *(link_to(Summary, key) for key in made[: MOST_LISTED + 1]),
        ]
    )


@admin.display(description="merged into")
def _derived(row: Summary) -> SafeString | str:
    derived = SummaryParent.objects.filter(source_id=row.pk).order_by("summary_id")
    return _listed(link_to(Summary, key) for key in derived.values_list("summary_id", flat=True)[: MOST_LISTED + 1])


def _listed(links: Any) -> SafeString | str:
    told = list(links)
    if len(told) > MOST_LISTED:
        told[MOST_LISTED:] = ["and more, which the dashboard has"]
    return format_html_join(", ", "{}", ((each,) for each in told)) or "–"
