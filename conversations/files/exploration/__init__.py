"""Describe a file in a few lines: its kind, size and structure.

Time and memory are limited for any file, and `explore` never fails. `Seen` collects the file's beginning and end while
its bytes are stored. `explore` then calls the explorer for the file's kind.
"""

from conversations.files.exploration.explorer import explore, mime_type_of
from conversations.files.exploration.glance import Seen

__all__ = ["Seen", "explore", "mime_type_of"]
