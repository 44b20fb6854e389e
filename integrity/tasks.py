"""Integrity's work for later."""

# They register theirs.
from integrity import retention_tasks, scan_tasks  # noqa: F401
