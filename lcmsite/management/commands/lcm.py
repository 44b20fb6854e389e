"""`manage.py lcm ...`: the same command line as the program `lcm`."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from lcmsite.cli.program import run


class Command(BaseCommand):
    help = "The command line of LCM; `lcm --help` lists its verbs."

    def run_from_argv(self, argv: list[str]) -> None:
        # Bypass Django's parser: LCM's own parser parses the verbs.
        sys.exit(run(argv[2:]))

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run([str(each) for each in args]))
