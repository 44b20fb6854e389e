"""docs/errors.md has every code that a refusal can have, with its status, and no other."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from conversations.errors import LcmError
from lcmsite.catalogue.problems import INTERNAL, KINDS
from lcmsite.cli.program import verbs
from lcmsite.ops.documents import PROJECT

ROOMS = ("conversations", "compaction", "retrieval", "integrity", "lcmsite")
STATUSES = {kind.error: kind.status for kind in KINDS}


def errors_below(error: type[LcmError]) -> Iterator[type[LcmError]]:
    for each in error.__subclasses__():
        yield each
        yield from errors_below(each)


def codes_in_the_code() -> dict[str, set[int]]:
    """Each code with the statuses it comes with: of errors themselves, and of those raised with another."""
    # What is only imported when it is needed has errors, too.
    assert verbs()
    kinds = {each.__name__: each for each in errors_below(LcmError)}
    statuses = {name: next(STATUSES[base] for base in kind.__mro__ if base in STATUSES) for name, kind in kinds.items()}
    found: dict[str, set[int]] = defaultdict(set)
    for name, kind in kinds.items():
        found[kind.code].add(statuses[name])
    for file in (file for room in ROOMS for file in (PROJECT / room).rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func).rpartition(".")[2]
            for given in call.keywords:
                either = [given.value.body, given.value.orelse] if isinstance(given.value, ast.IfExp) else [given.value]
                if name in kinds and given.arg == "code":
                    for code in (each.value for each in either if isinstance(each, ast.Constant)):
                        found[code].add(statuses[name])
    return {**found, INTERNAL.code: {INTERNAL.status}}


def codes_in_the_page() -> dict[str, set[int]]:
    """One status for all codes of a line, one for each of them, or, of a single code, all of its."""
    told = {}
    rows = re.findall(r"^\| (`.+?`) \| ([\d, ]+) \|", (PROJECT / "docs" / "errors.md").read_text(), re.M)
    for names, numbers in rows:
        codes, statuses = re.findall(r"`(\w+)`", names), [int(each) for each in numbers.split(", ")]
        if len(codes) == 1:
            told[codes[0]] = set(statuses)
        elif len(statuses) == 1:
            told |= {code: set(statuses) for code in codes}
        else:
            told |= {code: {status} for code, status in zip(codes, statuses, strict=True)}
    return told


def test_every_code_is_told_with_its_status_and_no_other():
    assert codes_in_the_page() == codes_in_the_code()
