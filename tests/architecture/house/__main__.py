"""Count properties of the code; fail if one exceeds its limit in `limits.toml`.

`python -m tests.architecture.house` prints the table of counts, limits and targets. With the argument `lower`, limits
are lowered to the counts that have become smaller. With `left`, it only prints how many lines and files the limits of
size still allow; this needs no database. With the name of a count, it also lists its items.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.architecture.house import framework, hops, imports, language, names, sizes, statements
from tests.architecture.house.sources import Count
from tests.scratch_database import scratch_database

LIMITS = Path(__file__).parent / "limits.toml"
MOST_SHOWN = 15
# The counts that most changes increase; they need no Django.
SIZES = {
    "product lines": sizes.product_lines,
    "product files": sizes.product_files,
    "test lines": sizes.test_lines,
    "largest folder": sizes.largest_folder,
    "folders of over 15 files": sizes.folders_over_15,
    "files of under 40 lines": sizes.short_files,
    "files of over 400 lines": sizes.long_files,
    "lines of conversations/fast": sizes.fast_lines,
    "settings": sizes.settings,
}


def counted(since: str) -> Iterator[tuple[str, Count]]:
    """Yield the name and the count of every line of the table."""
    yield from ((name, count()) for name, count in SIZES.items())
    yield "type systems for input", framework.input_type_systems()
    yield "modules with serializers", framework.serializers()
    yield "private names", framework.private_names()
    yield "subclasses of machinery", framework.framework_subclasses()
    yield "views around DRF", framework.views_around_drf()
    yield "import circles", imports.circles()
    yield "SQL statements in Python", statements.sql_statements()
    yield "SQL of over 3 lines in Python", statements.long_sql()
    yield "denied words in names", language.denied_words()
    yield "denied words in first lines", language.denied_first_lines()
    yield "first lines of over 79 characters", language.long_first_lines()
    yield "speeds and history in comments", language.speeds_and_history()
    yield "base names that several have", names.shared_base_names()
    yield "commit subjects of over 72", names.long_subjects(since)
    for operation, count in hops.hops().items():
        yield f"files on the way: {operation}", count


def main(arguments: list[str]) -> int:
    limits = tomllib.loads(LIMITS.read_text())
    if arguments == ["left"]:
        print("What the limits of size leave:", *_left(limits), sep="\n  ")
        return 0
    with scratch_database():
        counts = dict(counted(limits["commits"]["since"]))
    print(f"{'':<38} {'before':>7} {'now':>7} {'allowed':>7} {'target':>7}")
    for name, count in counts.items():
        limit = limits[name]
        met = "met" if count.value <= limit["target"] else ""
        print(f"{name:<38} {limit['before']:>7} {count.value:>7} {limit['allowed']:>7} {limit['target']:>7}  {met}")
    if arguments == ["lower"]:
        LIMITS.write_text(_lowered(LIMITS.read_text(), limits, counts))
    elif arguments:
        print("\n".join(counts[" ".join(arguments)].of))
    worse = {name: count for name, count in counts.items() if count.value > limits[name]["allowed"]}
    for name, count in worse.items():
        shown = "\n  ".join(count.of[:MOST_SHOWN])
        print(f"\n{name}: {count.value}, and only {limits[name]['allowed']} are allowed.\n  {shown}")
    return 1 if worse else 0


def _left(limits: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each limit of size, with how much it still allows."""
    for name, count in SIZES.items():
        yield f"{name:<30} {limits[name]['allowed'] - count().value:>6} of {limits[name]['allowed']}"


def _lowered(text: str, limits: Mapping[str, Any], counts: Mapping[str, Count]) -> str:
    """Lower each limit to its count plus its slack, but not below its target."""
    for name, count in counts.items():
        least = max(count.value + limits[name].get("slack", 0), limits[name]["target"])
        line = re.compile(rf'(?<=^"{re.escape(name)}" = {{ before = )(\d+), allowed = (\d+)', re.M)
        text = line.sub(lambda found, least=least: f"{found[1]}, allowed = {min(int(found[2]), least)}", text)
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
