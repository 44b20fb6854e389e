"""The pages of a workspace, in the order in which they are offered, with what one must be allowed to open them."""

from __future__ import annotations

from lcmsite.types import KeyScope

# Title, and in each: the page's name in `urls`, its label, the scope it needs.
GROUPS: tuple[tuple[str, tuple[tuple[str, str, KeyScope], ...]], ...] = (
    (
        "Memory",
        (("overview", "Overview", KeyScope.READ),),
    ),
)
