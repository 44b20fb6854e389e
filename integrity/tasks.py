"""Integrity's work for later."""

# They register theirs.
from integrity import scan_tasks  # noqa: F401
