"""The command line: verbs of the catalogue, and others for local work."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

# As in `lcmsite.catalogue.problems`, which cannot be imported yet.
_INTERRUPTED = 130
_MISCONFIGURED = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Set up Django, run one command line and return its exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["hook"] and len(words) > 1:
        # Agents wait for their hooks, which therefore run without Django.
        from lcmsite.hosts.hook import answered

        if answered(words[1:]):
            return 0
    # Imported here: hooks do not need it.
    from lcmsite.ops.processes import loading

    at_ctrl_c = signal.getsignal(signal.SIGINT)
    if at_ctrl_c is signal.default_int_handler:
        # During the imports there is nothing to clean up, and a traceback would not help.
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
    try:
        with loading():
            import django

            django.setup()
            # Imported after the setup, as it imports models.
            from lcmsite.cli.program import run
    except ModuleNotFoundError as missing:
        # The code was upgraded without its packages.
        sys.stderr.write(
            f"lcm: The package {missing.name!r}, which this version needs, is not installed: `make run` installs it, "
            "and docs/upgrade.md says how without make. [misconfigured]\n"
        )
        return _MISCONFIGURED

    signal.signal(signal.SIGINT, at_ctrl_c)
    return run(words)
