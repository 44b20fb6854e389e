"""Integrity's work for later."""

# They register theirs.
from integrity.anchors import tasks as anchor_tasks  # noqa: F401
from integrity.retention import tasks as retention_tasks  # noqa: F401
from integrity.scans import tasks as scan_tasks  # noqa: F401
