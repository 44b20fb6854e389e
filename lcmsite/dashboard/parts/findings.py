"""Explanations of findings and repair steps, and links to the items they name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

from django.urls import reverse

import integrity

README = Path(integrity.__file__).parent / "README.md"

_NAME = re.compile(r"`(\w+)`")
_ID = re.compile(r"(?P<kind>msg|part|sum|ses|file|seq)_(?P<rest>[0-9A-Za-z_-]+)")


def meaning_of(code: str) -> str:
    """What a finding of this invariant means, from integrity's README."""
    return _table("code", "what a finding means")[code]


def effect_of(operation: str) -> str:
    """What a repair step of this kind does, from integrity's README."""
    return _table("step", "what it does")[operation]


@cache
def _table(key: str, column: str) -> Mapping[str, str]:
    """A column of a table in the README, keyed by the names in the first column."""
    rows = [_cells(line) for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    first, place = next((at, row.index(column)) for at, row in enumerate(rows) if row[0] == key and column in row)
    found: dict[str, str] = {}
    # The rows after the table's heading and separator line, up to the heading of the next table.
    for row in rows[first + 2 :]:
        if not row[0].startswith("`"):
            break
        found |= dict.fromkeys(_NAME.findall(row[0]), row[place])
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def url_of(workspace: str, conversation_id: int | None, id: str) -> str | None:
    """The URL of the page that shows an id; None for an id without a page."""
    found = _ID.fullmatch(id)
    match found["kind"] if found else None:
        case "file":
            return reverse("file", kwargs={"workspace": workspace, "file_id": id})
        case "ses":
            return reverse("session-summary", kwargs={"workspace": workspace, "summary_id": id})
        case "msg" | "part":
            return f"{reverse('place', kwargs={'workspace': workspace})}?{urlencode({'id': id})}"
    if conversation_id is None:
        return None
    conversation = {"workspace": workspace, "conversation_id": conversation_id}
    if found and found["kind"] == "sum":
        return f"{reverse('lineage', kwargs=conversation)}?{urlencode({'node': id})}"
    seq = found["rest"].rpartition("_")[2] if found and found["kind"] == "seq" else ""
    return reverse("transcript", kwargs=conversation) + (f"?{urlencode({'seq': seq})}" if seq else "")


def message_in(id: str) -> str | None:
    """The message id in the id of a message or a part; None for any other id."""
    found = re.fullmatch(r"(?:msg|part)_([0-9]{1,18})(?:_[0-9]{1,9})?", id)
    return f"msg_{found[1]}" if found else None
