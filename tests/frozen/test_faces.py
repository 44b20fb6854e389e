"""The outward faces of LCM equal the files in faces/: a change of one is seen and deliberate."""

from __future__ import annotations

import re
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import pytest
from django.db import connection

from lcmsite.ops.documents import PROJECT
from tests.frozen.database import MAJOR
from tests.frozen.error_codes import refusals
from tests.frozen.faces import faces

FACES = Path(__file__).parent / "faces"
MOST_LINES = 60
ADVICE = (
    "{} has changed. If that is intended: run `make frozen`, read `git diff tests/frozen`, say in the commit who will"
    " notice, and tell them in docs/upgrade.md."
)

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def now(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        return faces()


def test_every_face_is_written_down(now):
    assert {path.name for path in FACES.iterdir()} == set(now)


@pytest.mark.parametrize("name", sorted(path.name for path in FACES.iterdir()))
def test_a_face_is_as_it_is_written_down(now, name):
    if name.endswith(".sql") and connection.pg_version // 10_000 != MAJOR:
        pytest.skip(f"Written down from PostgreSQL {MAJOR}.")
    before = (FACES / name).read_text()

    difference = unified_diff(before.splitlines(), now[name].splitlines(), "written down", "now", lineterm="", n=1)

    if shown := list(islice(difference, MOST_LINES)):
        pytest.fail("\n".join([*shown, "", ADVICE.format(name)]), pytrace=False)


def test_every_code_of_a_refusal_stands_in_its_page_with_its_statuses_and_no_other():
    statuses: dict[str, set[int]] = {}
    for refusal in refusals():
        statuses.setdefault(refusal.code, set()).add(refusal.status)

    assert statuses_in_the_page() == statuses


def statuses_in_the_page() -> dict[str, set[int]]:
    """One status for all codes of a line, one for each of them, or, of a single code, all of its."""
    found: dict[str, set[int]] = {}
    page = (PROJECT / "docs" / "errors.md").read_text()
    for names, numbers in re.findall(r"^\| (`.+?`) \| ([\d, ]+) \|", page, re.M):
        codes, statuses = re.findall(r"`(\w+)`", names), [int(each) for each in numbers.split(", ")]
        if len(codes) == 1:
            found[codes[0]] = set(statuses)
        else:
            each = statuses * (len(codes) // len(statuses))
            found |= {code: {status} for code, status in zip(codes, each, strict=True)}
    return found
