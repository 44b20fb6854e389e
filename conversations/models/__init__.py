"""The tables of the store: a model a table, a file a subject."""

from conversations.models.conversation import ContextItem, Conversation
from conversations.models.large_file import LargeFile
from conversations.models.message import PART_COLUMNS, Message, MessagePart
from conversations.models.summary import Summary, SummaryMessage, SummaryParent
from conversations.models.workspace import Workspace

__all__ = [
    "PART_COLUMNS",
    "ContextItem",
    "Conversation",
    "LargeFile",
    "Message",
    "MessagePart",
    "Summary",
    "SummaryMessage",
    "SummaryParent",
    "Workspace",
]
