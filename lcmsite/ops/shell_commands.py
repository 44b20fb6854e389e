"""LCM's commands as a person can type them in the working directory."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from django.conf import settings


def lcm() -> str:
    """The command `lcm`, such as `LCM_DATA_DIR=... .venv/bin/lcm`."""
    installed = Path(sys.executable).with_name("lcm")
    return _with_data_dir(_from_here(installed) if installed.exists() else "lcm")


def manage_py() -> str:
    """Django's command line, such as `.venv/bin/python manage.py`."""
    return _with_data_dir(f"{_from_here(Path(sys.executable))} {_from_here(settings.BASE_DIR / 'manage.py')}")


def _with_data_dir(command: str) -> str:
    return f"LCM_DATA_DIR={shlex.quote(str(settings.DATA_DIR))} {command}" if settings.DEPLOYMENT.data_dir else command


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
