"""What can be said of a file in a few lines: its kind, size and shape. Bounded whatever the file, and never failing.

A first look (`Glance`) takes in the bytes as they pass by. `explore` then asks the explorer of that kind of file.
"""

from conversations.files.exploration.explorer import explore
from conversations.files.exploration.glance import Glance

__all__ = ["Glance", "explore"]
