"""After a rewind, Codex goes on in another file; a fork has a file of its own, without its past."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.models import Conversation
from tests.importing import host_files as files

pytestmark = pytest.mark.django_db

ID, FORK = "01a22672-5f1e-7db3-ab1c-bc7c4f8fb2e2", "01a22672-634d-7ee1-9715-41ab730a9bae"
# The ids of later files. A base names a file: the session's id is also the id of its first file.
LATER, LAST = "01a22672-607e-7b70-a6a6-bf9157ba5e6a", "01a22672-6190-7f33-83c5-0b2a63ce08ed"
NAME = "rollout-2026-01-31T12-00-0"
FIRST, SECOND, THIRD = f"{NAME}0-{ID}.jsonl", f"{NAME}1-{ID}_{LATER}.jsonl", f"{NAME}2-{ID}_{LAST}.jsonl"


def opened(ordinal: int, of: str = "", *, id: str = ID, **more: Any) -> dict[str, Any]:
    """The first line of a file that goes on from another one, which `of` names."""
    past = {"history_base": {"thread_id": of, "end_ordinal_exclusive": ordinal, "end_byte_offset": 1}} if of else {}
    payload = {"session_id": id, "id": id, **more, "history_mode": "paginated", **past}
    return {"timestamp": files.ISO, "ordinal": ordinal, "type": "session_meta", "payload": payload}


def spoken(ordinal: int, role: str, text: str, *, minute: int = 0) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    time = f"2026-01-31T12:{minute:02}:{ordinal:02}.000Z"
    return {"timestamp": time, "ordinal": ordinal, "type": "response_item", "payload": item}


SESSION = [
    opened(0),
    spoken(3, "user", "Which port?"),
    spoken(5, "assistant", "It is 5433."),
    spoken(8, "user", "Paint it blue."),
    spoken(9, "assistant", "It is blue."),
]
# The first ordinals are those of the turn that was taken back.
REWOUND = [
    opened(7, ID),
    spoken(8, "user", "Paint it green.", minute=1),
    spoken(9, "assistant", "It is green.", minute=1),
]


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


# A file with another name has the base of a rewind, too.
@pytest.mark.parametrize("name", [THIRD, "copy.jsonl"])
def test_a_rewind_of_a_rewind_follows_the_active_path(imported, name):
    again = [opened(9, LATER), spoken(12, "assistant", "It is dark green.", minute=2)]
    for each, lines in [(FIRST, SESSION), (SECOND, REWOUND), (name, again)]:
        imported(each, files.lines_of(lines))

    assert active(ID) == ["Which port?", "It is 5433.", "Paint it green.", "It is dark green."]
    assert Conversation.objects.get(session_id=ID).parent is None
    assert "lcm_parent_session" not in (Conversation.objects.get(session_id=ID).metadata or {})


# Codex writes no base if the first line of the session was taken back as well.
@pytest.mark.parametrize("first", [opened(0), opened(2, ID)])
def test_a_rewind_to_the_first_prompt_begins_anew(imported, first):
    anew = [first, spoken(4, "user", "Begin anew.", minute=2), spoken(6, "assistant", "Yes.", minute=2)]
    for name, lines in [(FIRST, SESSION), (SECOND, REWOUND), (THIRD, anew[:2]), (THIRD, anew), (SECOND, REWOUND)]:
        imported(name, files.lines_of(lines))

    assert active(ID) == ["Begin anew.", "Yes."]
    assert Conversation.objects.get(session_id=ID).next_seq == 9


def test_a_prompt_that_is_sent_again_after_a_rewind_is_stored(imported):
    again = [REWOUND[0], *(line | {"timestamp": "2026-01-31T12:01:00.000Z"} for line in SESSION[3:])]
    for name, lines in [(FIRST, SESSION), (SECOND, again), (FIRST, SESSION), (SECOND, again)]:
        imported(name, files.lines_of(lines))

    assert active(ID) == ["Which port?", "It is 5433.", "Paint it blue.", "It is blue."]
    assert Conversation.objects.get(session_id=ID).next_seq == 7


def test_a_file_with_a_line_removed_is_refused(imported, refused):
    imported(FIRST, files.lines_of(SESSION))

    assert refused(FIRST, files.lines_of([SESSION[0], *SESSION[2:]]))["code"] == "history_changed"


def test_a_fork_is_a_child_of_the_session_that_has_its_past(imported):
    # The base is a later file of that session.
    origin = {"forked_from_id": ID, "forked_from_ordinal_exclusive": 10}
    fork = [opened(10, LATER, id=FORK, **origin), spoken(14, "user", "Paint it red.", minute=3)]
    rewound = [opened(12, FORK, id=FORK, **origin), spoken(16, "user", "Paint it pink.", minute=4)]
    for name, lines in [(f"{NAME}3-{FORK}.jsonl", fork), (FIRST, SESSION), (SECOND, REWOUND)]:
        imported(name, files.lines_of(lines))

    child = Conversation.objects.get(session_id=FORK)
    assert (child.parent.session_id, active(FORK)) == (ID, ["Paint it red."])
    assert active(ID)[-1] == "It is green."

    imported(f"{NAME}4-{FORK}_{LAST}.jsonl", files.lines_of(rewound))

    assert active(FORK) == ["Paint it pink."]
