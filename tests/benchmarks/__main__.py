"""`make bench`: how fast LCM is, beside the same work in plain SQL, in one run on one database.

Every figure of ours stands beside its floor (the same rows, written or read by psycopg with nothing in between, by
turns with ours) and beside the goal. Compare the ratios: the figures themselves are the machine's, and its weather's.
The exit status is 0 whether goals are met or not, as this measures and does not judge.
"""

from __future__ import annotations

import argparse
import os
import time

from tests.scratch_database import scratch_database

QUICK = (1_000, 10_000)
FULL = (1_000, 10_000, 100_000)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 messages instead of 100,000: some minutes")
    parser.add_argument(
        "--only",
        nargs="*",
        default=(),
        choices=("ingest", "http", "history", "long", "check", "vectors", "gateway", "hook", "memory"),
        help="these chapters alone",
    )
    parser.add_argument(
        "--passages", type=int, default=10_000, help="so many passages with vectors; 1,000,000 take an hour"
    )
    arguments = parser.parse_args()
    # Calm: conversations of any length are compacted when it is their turn to be measured, and not before. What is
    # measured under pressure says so, with settings of its own.
    os.environ |= {
        "LCM_CONVERSATION_DEFAULTS": '{"max_active_messages": 1000000}',
        "LCM_MODEL_TOKEN_BUDGET": "100000000",
    }
    started = time.monotonic()
    with scratch_database():
        # Not imported above: models want a Django that is set up.
        from tests.benchmarks.course import run

        run(QUICK if arguments.quick else FULL, only=arguments.only, passages=arguments.passages)
    print(f"{time.monotonic() - started:.0f} s in all.")


if __name__ == "__main__":
    main()
