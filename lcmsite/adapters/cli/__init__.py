"""The command line, rendered from the catalogue, with a few verbs of its own for work that is long or local."""

from __future__ import annotations

import os
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the arguments say and return the exit status; the program `lcm`."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
    django.setup()
    # Not before: what it imports are models.
    from lcmsite.adapters.cli.program import run

    return run(argv)
