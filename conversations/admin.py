"""Admin tables of conversations, messages, summaries and files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from conversations.admin_rows import RowsAdmin, link_to, links_to, page_of
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

# Links shown of a context or of a summary's sources; the dashboard shows all.
MOST_LISTED = 200

conversation = links_to("conversation", Conversation)
message = links_to("message", Message)


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


@admin.display(description="active context")
def _context(row: Conversation) -> SafeString | str:
    """The active context, whose table has no page: its key has two columns."""
    items = ContextItem.objects.filter(conversation_id=row.pk).order_by("ordinal")[: MOST_LISTED + 1]
    return _listed(
        link_to(Message, each.message_id) if each.message_id else link_to(Summary, each.summary_id) for each in items
    )


@admin.display(description="summarized in")
def _summaries(row: Message) -> SafeString | str:
    return _listed(
        _links(Summary, SummaryMessage.objects.filter(message_id=row.pk).order_by("summary_id"), "summary_id")
    )


@admin.display(description="sources")
def _sources(row: Summary) -> SafeString | str:
    of_messages = SummaryMessage.objects.filter(summary_id=row.pk).order_by("ordinal")
    of_summaries = SummaryParent.objects.filter(summary_id=row.pk).order_by("ordinal")
    return _listed([*_links(Message, of_messages, "message_id"), *_links(Summary, of_summaries, "source_id")])


@admin.display(description="derived")
def _derived(row: Summary) -> SafeString | str:
    return _listed(_links(Summary, SummaryParent.objects.filter(source_id=row.pk).order_by("summary_id"), "summary_id"))


def _links(model: Any, rows: QuerySet[Any], name: str) -> list[SafeString | str]:
    return [link_to(model, key) for key in rows.values_list(name, flat=True)[: MOST_LISTED + 1]]


def _listed(links: Iterable[SafeString | str]) -> SafeString | str:
    shown = list(links)
    if len(shown) > MOST_LISTED:
        shown[MOST_LISTED:] = ["more (see the dashboard)"]
    return format_html_join(", ", "{}", ((each,) for each in shown)) or "–"


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
    more_fields=(_contents, _context),
    view_on_site=lambda self, obj: page_of(obj),
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
    more_fields=(_summaries,),
    view_on_site=lambda self, obj: f"{page_of(obj.conversation)}?seq={obj.seq}#m{obj.seq}",
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
    more_fields=(_sources, _derived),
    view_on_site=lambda self, obj: f"{page_of(obj.conversation, 'lineage')}?summary={obj.summary_id}",
)
admin.site.register(
    LargeFile,
    RowsAdmin,
    long_texts=("exploration_summary",),
    list_display=("file_id", conversation, "file_name", "mime_type", "byte_size", "created_at"),
    search_fields=("file_name",),
    ordering=("-created_at", "file_id"),
    view_on_site=lambda self, obj: reverse(
        "file", kwargs={"workspace": obj.conversation.workspace.name, "file_id": obj.file_id}
    ),
)
admin.site.register(
    Workspace,
    RowsAdmin,
    list_display=("name", "workspace_id", "created_at", "cold_after_days"),
    search_fields=("name",),
    view_on_site=lambda self, obj: reverse("overview", kwargs={"workspace": obj.name}),
)
admin.site.register(
    MessagePart,
    RowsAdmin,
    long_texts=("text_content", "tool_output", "tool_error", "file_url", "subtask_prompt"),
    list_display=("part_id", message, "ordinal", "part_type", "tool_name"),
    list_filter=("part_type",),
    search_fields=("tool_name",),
    ordering=("-message_id", "ordinal"),
)
admin.site.register(
    FileReference,
    RowsAdmin,
    list_display=("reference_id", message, links_to("file", LargeFile)),
    search_fields=("file__file_id",),
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
)
