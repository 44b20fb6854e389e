"""Describe a file in a few lines: its kind, size and structure.

Bounded for any file, and never failing. `Seen` collects the beginning and the end while the bytes are stored.
`explore` then calls the explorer of that kind.
"""

from conversations.files.exploration.explorer import explore, mime_type_of
from conversations.files.exploration.glance import Seen

__all__ = ["Seen", "explore", "mime_type_of"]
