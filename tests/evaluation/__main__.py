"""`make eval`: how good LCM is on real conversations: what it saves, that it loses nothing, what it finds again.

Each figure stands beside its goal and, where there are such, the same figure of others. The conversations lie beside
the project, in ../shared/data; where they do not, nothing can be measured. The exit status is 0 whether goals are met
or not, as this measures and does not judge.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Sequence
from typing import Any

from tests.scratch_database import scratch_database
from tests.tables import in_columns, met

CHAPTERS = ("tokens", "summaries", "retrieval")
HEADINGS = ("goal", "measure", "method", "value", "wanted", "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation", description=__doc__)
    parser.add_argument("--only", nargs="*", default=CHAPTERS, choices=CHAPTERS, help="these chapters")
    chosen: Sequence[str] = parser.parse_args().only
    from tests.conversations.real_data import DATA

    if not DATA.is_dir():
        print(f"There are no conversations to measure on: {DATA} is not there.")
        return
    with scratch_database():
        for chapter in chosen:
            if importlib.util.find_spec(f"tests.evaluation.{chapter}") is None:
                print(f"There is no chapter {chapter} yet.", end="\n\n")
                continue
            started = time.monotonic()
            print(f"{chapter} ...", end=" ", file=sys.stderr, flush=True)
            # Not imported above: models want a Django that is set up.
            module = importlib.import_module(f"tests.evaluation.{chapter}")
            figures = list(module.figures())
            print(f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
            if chapter == "tokens":
                print(module.table(), end="\n\n")
            print(in_columns([HEADINGS, *map(_cells, figures)], to_the_right={3, 4}), end="\n\n")


def _cells(figure: Any) -> tuple[str, ...]:
    goal = figure.goal
    return (
        str(figure.number),
        figure.measure,
        figure.method,
        f"{figure.value:.3f}",
        "" if goal is None else f">= {goal:.3f}",
        met(None if goal is None else figure.value >= goal),
    )


if __name__ == "__main__":
    main()
