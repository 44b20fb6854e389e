"""The pages of a workspace, in the order in which they are offered, with what one must be allowed to open them."""

from __future__ import annotations

from lcmsite.types import KeyScope

# Title, and in each: the page's name in `urls`, its label, the scope it needs.
GROUPS: tuple[tuple[str, tuple[tuple[str, str, KeyScope], ...]], ...] = (
    (
        "Memory",
        (
            ("overview", "Overview", KeyScope.READ),
            ("conversations", "Conversations", KeyScope.READ),
        ),
    ),
)

# The tabs of a conversation, in the same form.
TABS: tuple[tuple[str, str, KeyScope], ...] = (
    ("transcript", "Transcript", KeyScope.READ),
    ("lineage", "Lineage", KeyScope.READ),
)
