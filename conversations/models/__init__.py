"""Models of the store's tables."""

from conversations.models.administration import AuditEntry, AuditHead, AuditLink, ColdBlock, Quarantine
from conversations.models.conversation import ContextItem, Conversation, HeadMove, JournalEntry, Project, Workspace
from conversations.models.files import FileReference, LargeFile, Upload, UploadChunk
from conversations.models.message import Message, MessagePart
from conversations.models.summary import Summary, SummaryMessage, SummaryParent

__all__ = [
    "AuditEntry",
    "AuditHead",
    "AuditLink",
    "ColdBlock",
    "ContextItem",
    "Conversation",
    "FileReference",
    "HeadMove",
    "JournalEntry",
    "LargeFile",
    "Message",
    "MessagePart",
    "Project",
    "Quarantine",
    "Summary",
    "SummaryMessage",
    "SummaryParent",
    "Upload",
    "UploadChunk",
    "Workspace",
]
