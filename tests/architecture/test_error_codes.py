"""docs/errors.md has every code that a refusal can have, with its status, and no other."""

from __future__ import annotations

import re
from collections import defaultdict

from lcmsite.documents import PROJECT
from tests.frozen.error_codes import refusals


def codes_in_the_code() -> dict[str, set[int]]:
    """Each code with the statuses it comes with."""
    found: dict[str, set[int]] = defaultdict(set)
    for each in refusals():
        found[each.code].add(each.status)
    return dict(found)


def codes_in_the_page() -> dict[str, set[int]]:
    """One status for all codes of a line, one for each of them, or, of a single code, all of its."""
    listed = {}
    rows = re.findall(r"^\| (`.+?`) \| ([\d, ]+) \|", (PROJECT / "docs" / "errors.md").read_text(), re.M)
    for names, numbers in rows:
        codes, statuses = re.findall(r"`(\w+)`", names), [int(each) for each in numbers.split(", ")]
        if len(codes) == 1:
            listed[codes[0]] = set(statuses)
        elif len(statuses) == 1:
            listed |= {code: set(statuses) for code in codes}
        else:
            listed |= {code: {status} for code, status in zip(codes, statuses, strict=True)}
    return listed


def test_the_page_of_errors_lists_every_code_with_its_status():
    assert codes_in_the_page() == codes_in_the_code()
