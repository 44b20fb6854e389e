"""Isolate a test run from the environment: it keeps only LCM_DATABASE_URL of LCM."""

from __future__ import annotations

import os

import pytest
from django.conf import settings

KEPT = "LCM_DATABASE_URL"


def leave_the_callers_settings() -> None:
    """Remove the caller's `LCM_*` variables, before conftest reads the settings.

    A worker keeps its `LCM_*` variables: it is a child of the run, which has set them.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        theirs = [name for name in os.environ if name.startswith("LCM_") and name != KEPT]
        if theirs and settings.configured:
            raise pytest.UsageError(f"The settings are read already: unset DJANGO_SETTINGS_MODULE or {theirs[0]}.")
        for name in theirs:
            del os.environ[name]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
