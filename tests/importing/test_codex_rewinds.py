"""After a rewind, Codex goes on in another file; a fork has a file of its own, without its past."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.models import Conversation
from tests.importing import host_files as files

pytestmark = pytest.mark.django_db

ID, FORK = "01a22643-32b1-7c91-82b8-c70cfe42b4a9", "01a2265f-9898-7dd1-8679-b7d4af2b367d"
FIRST, SECOND = f"rollout-1-{ID}.jsonl", f"rollout-2-{ID}_01a22643-60a9.jsonl"


def opened(ordinal: int, *, id: str = ID, base: int | None = None) -> dict[str, Any]:
    past = {} if base is None else {"history_base": {"thread_id": ID, "end_ordinal_exclusive": base}}
    return {"timestamp": files.ISO, "ordinal": ordinal, "type": "session_meta", "payload": {"id": id, **past}}


def spoken(ordinal: int, role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"timestamp": files.ISO, "ordinal": ordinal, "type": "response_item", "payload": item}


SESSION = [
    opened(0),
    spoken(3, "user", "Which port?"),
    spoken(5, "assistant", "It is 5433."),
    spoken(8, "user", "Paint it blue."),
    spoken(9, "assistant", "It is blue."),
]
# The first ordinals are those of the turn that was taken back.
REWOUND = [opened(7, base=7), spoken(8, "user", "Paint it green."), spoken(9, "assistant", "It is green.")]


def active(session_id: str) -> list[str]:
    found = Conversation.objects.get(session_id=session_id)
    return [each.content or "" for each in found.messages.order_by("seq") if found.is_active(each.seq)]


def test_what_was_taken_back_is_off_the_active_path(imported):
    for name, lines in [
        (FIRST, SESSION),
        (SECOND, REWOUND),
        (FIRST, SESSION),
        (SECOND, REWOUND[:2]),
        (SECOND, REWOUND),
    ]:
        imported(name, files.lines_of(lines))

    assert active(ID) == ["Which port?", "It is 5433.", "Paint it green.", "It is green."]
    assert Conversation.objects.get(session_id=ID).next_seq == 7


def test_a_rewind_of_a_rewind_follows_the_active_path(imported):
    again = [opened(9, base=9), spoken(12, "assistant", "It is dark green.")]
    for name, lines in [(FIRST, SESSION), (SECOND, REWOUND), (f"rollout-3-{ID}_01a22643-77aa.jsonl", again)]:
        imported(name, files.lines_of(lines))

    assert active(ID) == ["Which port?", "It is 5433.", "Paint it green.", "It is dark green."]


def test_a_fork_is_a_child_of_the_session_that_has_its_past(imported):
    fork = [opened(7, id=FORK, base=7), spoken(8, "user", "Paint it red.")]
    for name, lines in [(f"rollout-4-{FORK}.jsonl", fork), (FIRST, SESSION)]:
        imported(name, files.lines_of(lines))

    child = Conversation.objects.get(session_id=FORK)
    assert (child.parent.session_id, active(FORK)) == (ID, ["Paint it red."])
    assert active(ID)[-1] == "It is blue."
