"""What a run of the tests takes over from whoever started it: nothing of LCM but the address of a server."""

from __future__ import annotations

import os

import pytest
from django.conf import settings

KEPT = "LCM_DATABASE_URL"


def leave_the_callers_settings() -> None:
    """Have Django find its settings in an environment without the caller's `LCM_*`; for conftest, before it reads them.

    A worker of the run is its child: what is in its environment, the run itself has put there.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        theirs = [name for name in os.environ if name.startswith("LCM_") and name != KEPT]
        if theirs and settings.configured:
            raise pytest.UsageError(f"The settings are read already: unset DJANGO_SETTINGS_MODULE or {theirs[0]}.")
        for name in theirs:
            del os.environ[name]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
