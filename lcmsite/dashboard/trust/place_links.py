"""Links to what a finding, a repair step or a quarantine names by its id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

_ID = re.compile(r"(?P<kind>msg|part|sum|file|seq)_(?P<rest>[0-9A-Za-z_-]+)")


@dataclass(frozen=True)
class Place:
    """An id and the page that shows it; None for an id without a page."""

    id: str
    url: str | None


def place_of(workspace: str, conversation_id: int | None, id: str) -> Place:
    """The page of an id; a message's is a redirect, because transcripts use seqs."""
    found = _ID.fullmatch(id)
    match found["kind"] if found else None:
        case "file":
            return Place(id, reverse("file", kwargs={"workspace": workspace, "file_id": id}))
        case "msg" | "part":
            return Place(id, f"{reverse('place', kwargs={'workspace': workspace})}?{urlencode({'id': id})}")
    if conversation_id is None:
        return Place(id, None)
    conversation = {"workspace": workspace, "conversation_id": conversation_id}
    if found and found["kind"] == "sum":
        return Place(id, f"{reverse('lineage', kwargs=conversation)}?{urlencode({'node': id})}")
    seq = found["rest"].rpartition("_")[2] if found and found["kind"] == "seq" else ""
    return Place(id, reverse("transcript", kwargs=conversation) + (f"?{urlencode({'seq': seq})}" if seq else ""))


def message_in(id: str) -> str | None:
    """The id of the message, for the id of a message or of a part."""
    found = re.fullmatch(r"(?:msg|part)_([0-9]{1,18})(?:_[0-9]{1,9})?", id)
    return f"msg_{found[1]}" if found else None
