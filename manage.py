#!/usr/bin/env python
"""Django's command line; it starts the embedded database where one is needed."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
    from django.core.management import execute_from_command_line

    from lcmsite.ops.processes import freeze_loaded

    freeze_loaded()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
