"""The tables of the store: a model a table, a file a subject."""

from conversations.models.conversation import ContextItem, Conversation
from conversations.models.large_file import LargeFile
from conversations.models.message import PART_COLUMNS, Message, MessagePart
from conversations.models.summary import Summary, SummaryMessage, SummaryParent
from conversations.models.trust import AuditEntry, AuditHead, AuditLink, ColdBlock, Quarantine
from conversations.models.upload import FileReference, Upload, UploadChunk
from conversations.models.workspace import Workspace

__all__ = [
    "PART_COLUMNS",
    "AuditEntry",
    "AuditHead",
    "AuditLink",
    "ColdBlock",
    "ContextItem",
    "Conversation",
    "FileReference",
    "LargeFile",
    "Message",
    "MessagePart",
    "Quarantine",
    "Summary",
    "SummaryMessage",
    "SummaryParent",
    "Upload",
    "UploadChunk",
    "Workspace",
]
