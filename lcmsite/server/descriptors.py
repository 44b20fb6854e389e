"""File descriptors: how many this process may have, and how many connections fit into them."""

from __future__ import annotations

import resource
from functools import cache

from django.conf import settings

# Of the process itself: database connections, log, files of metrics, threads that read files.
RESERVED = 200


def raise_limit() -> None:
    """Raise the soft limit of open files to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@cache
def most_connections() -> int:
    """LCM_MAX_CONNECTIONS, or fewer where the process may not have the descriptors.

    A connection may need two: its own, and that of a file with its body or its answer.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    configured: int = settings.DEPLOYMENT.max_connections
    if soft == resource.RLIM_INFINITY:
        return configured
    return max(16, min(configured, (soft - RESERVED) // 2))
