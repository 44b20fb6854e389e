"""The menu: the pages of a workspace, with the scope that each needs."""

from __future__ import annotations

from lcmsite.types import KeyScope

# Title, then for each page: its name in `urls`, its label, the scope it needs.
GROUPS: tuple[tuple[str, tuple[tuple[str, str, KeyScope], ...]], ...] = (
    (
        "Memory",
        (
            ("overview", "Overview", KeyScope.READ),
            ("conversations", "Conversations", KeyScope.READ),
            ("search", "Search", KeyScope.READ),
            ("runs", "Runs and jobs", KeyScope.READ),
            ("files", "Files", KeyScope.READ),
        ),
    ),
    (
        "Trust",
        (
            ("integrity", "Integrity", KeyScope.READ),
            ("quarantine", "Quarantine", KeyScope.READ),
            ("retention", "Retention", KeyScope.READ),
            ("erasures", "Erasure", KeyScope.ADMIN),
        ),
    ),
    (
        "Access",
        (
            ("grants", "Grants", KeyScope.READ),
            ("keys", "API keys", KeyScope.ADMIN),
            ("members", "Members", KeyScope.ADMIN),
            ("workspaces", "Workspaces", KeyScope.READ),
        ),
    ),
    (
        "Site",
        (
            ("models", "Models", KeyScope.ADMIN),
            ("settings", "Settings", KeyScope.ADMIN),
            ("audit", "Audit", KeyScope.ADMIN),
        ),
    ),
)

# Pages for superusers only.
OF_THE_SITE = frozenset({"models"})

# Pages that belong to one of those, but have another address.
UNDER = {"import": "conversations", "message": "conversations"}

# The tabs of a conversation, in the same form.
TABS: tuple[tuple[str, str, KeyScope], ...] = (
    ("transcript", "Transcript", KeyScope.READ),
    ("lineage", "Lineage", KeyScope.READ),
    ("inspector", "Context", KeyScope.READ),
    ("conversation-runs", "Runs", KeyScope.READ),
    ("plans", "Plan", KeyScope.READ),
    ("conversation-files", "Files", KeyScope.READ),
    ("conversation-trust", "Trust", KeyScope.READ),
)
