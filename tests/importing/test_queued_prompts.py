"""Prompts that were sent while Claude Code worked are messages, although their lines have another form."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.models import Conversation, Message
from tests.importing import host_files as files

pytestmark = pytest.mark.django_db

CALL = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "count"}}]
RESULT = [{"type": "tool_result", "tool_use_id": "t1", "content": "41"}]


def queued(id: str, parent: str, text: str, **more: object) -> dict[str, object]:
    attached = {"type": "queued_command", "prompt": [{"type": "text", "text": text}], "commandMode": "prompt"}
    return files.claude_code_line(id, parent, None, "attachment", attachment=attached | more)


SESSION = [
    files.claude_code_line("u1", None, "Count the boats."),
    files.claude_code_line("a1", "u1", CALL, "assistant"),
    files.claude_code_line("r1", "a1", RESULT),
    queued("q1", "r1", "Note the green buoy, too."),
    files.claude_code_line("a2", "q1", "41, and the buoy is green.", "assistant"),
]
AFTER = [
    files.claude_code_line("u2", "a2", "Thanks."),
    queued("q2", "u2", "And the red one?"),
    files.claude_code_line("a3", "q2", "It is red.", "assistant"),
]


def stored() -> list[str]:
    return [text for text in Message.objects.order_by("seq").values_list("content", flat=True) if "[" not in text]


def active() -> int:
    conversation = Conversation.objects.get()
    return sum(conversation.is_active(seq) for seq in conversation.messages.values_list("seq", flat=True))


def unread(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make queued prompts lines of an unknown type, as an earlier version of LCM read them."""
    return [line | {"attachment": {"type": "unknown"}} if line["type"] == "attachment" else line for line in lines]


def test_they_are_stored_in_their_place_and_once(imported):
    for lines in (SESSION, SESSION, SESSION + AFTER):
        imported("cc-2.jsonl", files.lines_of(lines))

    assert stored() == [
        "Count the boats.", "41", "Note the green buoy, too.", "41, and the buoy is green.",
        "Thanks.", "And the red one?", "It is red.",
    ]  # fmt: skip


def test_a_session_that_an_earlier_version_imported_without_them_goes_on(imported):
    imported("cc-2.jsonl", files.lines_of(unread(SESSION)))

    for lines in (SESSION, SESSION + AFTER):
        imported("cc-2.jsonl", files.lines_of(lines))

    assert "Note the green buoy, too." not in stored()
    assert stored()[-3:] == ["Thanks.", "And the red one?", "It is red."]


PROMPT = "Note the green buoy, too."
USER_LINE = files.claude_code_line("uq", "a2", PROMPT)
NOTED = files.claude_code_line("a3", "uq", "Noted.", "assistant")


@pytest.mark.parametrize(
    ("ids", "again"),
    [
        ({"source_uuid": "uq"}, USER_LINE),
        ({"source_uuid": "sent"}, files.claude_code_line("uq", "a2", PROMPT, sentAsUuid="sent")),
        ({"source_uuid": "s1"}, queued("uq", "a2", PROMPT, source_uuid="s1")),
        ({"delivery_id": "d1"}, queued("uq", "a2", PROMPT, delivery_id="d1")),
    ],
)
def test_a_prompt_in_several_lines_is_stored_once(imported, ids, again):
    lines = [*SESSION[:3], queued("q1", "r1", PROMPT, **ids), SESSION[4], again, again | {"uuid": "uq"}, NOTED]

    for count in (6, len(lines), len(lines)):
        imported("cc-2.jsonl", files.lines_of(lines[:count]))

    assert stored() == ["Count the boats.", "41", PROMPT, "41, and the buoy is green.", "Noted."]
    assert active() == Message.objects.count() == 6


@pytest.mark.parametrize("text", [PROMPT + " Please.", "Also the red one."])
def test_another_prompt_with_the_same_id_is_stored_too(imported, text):
    lines = [*SESSION[:3], queued("q1", "r1", PROMPT, source_uuid="uq"), SESSION[4]]

    imported("cc-2.jsonl", files.lines_of([*lines, files.claude_code_line("uq", "a2", text), NOTED]))

    assert stored()[2::2] == [PROMPT, text]


@pytest.mark.parametrize("count", [4, 5, 6, 7])
def test_a_prompt_that_an_earlier_version_read_from_its_second_line_stays_stored_once(imported, count):
    lines = [*SESSION[:3], queued("q1", "r1", PROMPT, source_uuid="uq"), SESSION[4], USER_LINE, NOTED]
    imported("cc-2.jsonl", files.lines_of(unread(lines)[:count]))

    for more in (
        [],
        [],
        [queued("q2", "a3", "And the red one?"), files.claude_code_line("a4", "q2", "Red.", "assistant")],
    ):
        imported("cc-2.jsonl", files.lines_of(lines + more))

    assert stored().count(PROMPT) == 1
    assert stored()[-2:] == ["And the red one?", "Red."]
    assert active() == Message.objects.count() == 8


def test_a_rewind_follows_what_is_before_an_unread_prompt(imported):
    tail = [files.claude_code_line("u2", "q1", "Second."), files.claude_code_line("a5", "u2", "Fine.", "assistant")]
    rewound = [files.claude_code_line("u3", "q1", "Third."), files.claude_code_line("a6", "u3", "Good.", "assistant")]
    lines = [*SESSION[:4], queued("q2", "q1", "And the red one?"), *tail]
    for line in (*tail, *rewound):
        line["parentUuid"] = line["parentUuid"].replace("q1", "q2")
    imported("cc-2.jsonl", files.lines_of(unread(lines)))

    imported("cc-2.jsonl", files.lines_of([*lines, *rewound]))

    conversation = Conversation.objects.get()
    inactive = [each.content for each in conversation.messages.order_by("seq") if not conversation.is_active(each.seq)]
    assert inactive == ["Second.", "Fine."]


@pytest.mark.parametrize("place", [3, 5])
def test_a_changed_prompt_is_refused(imported, refused, place):
    more = [queued("q2", "a2", "And the red one?"), files.claude_code_line("a3", "q2", "It is red.", "assistant")]
    imported("cc-2.jsonl", files.lines_of([*SESSION, *more]))
    lines = [*SESSION, *more]
    lines[place] = queued(lines[place]["uuid"], lines[place]["parentUuid"], "Note nothing.")

    problem = refused("cc-2.jsonl", files.lines_of(lines))

    assert problem["code"] == "history_changed"
    assert f"line {place + 1} differs" in problem["detail"]


@pytest.mark.parametrize(
    "prompt",
    [
        ["text"],
        [{"type": "text"}],
        [{"type": "tool_result", "tool_use_id": "t9", "content": "x"}],
        " \n",
        [],
        {},
        None,
        1,
    ],
)
def test_a_prompt_of_another_form_is_no_message(imported, prompt):
    imported("cc-2.jsonl", files.lines_of([*SESSION[:3], queued("q1", "r1", "", prompt=prompt), SESSION[4]]))

    assert stored() == ["Count the boats.", "41", "41, and the buoy is green."]


@pytest.mark.parametrize("is_apart", [False, True])
def test_a_prompt_that_an_earlier_version_read_from_none_of_its_lines_is_not_added(imported, is_apart):
    first, again = (queued(id, parent, PROMPT, source_uuid="s1") for id, parent in (("q1", "r1"), ("q2", "q1")))
    middle = [first, SESSION[4], again] if is_apart else [first, again, SESSION[4]]
    lines = [*SESSION[:3], *middle, files.claude_code_line("u2", "a2", "Thanks.")]
    imported("cc-2.jsonl", files.lines_of(unread(lines)))

    for more in ([], [queued("q3", "u2", PROMPT, source_uuid="s2")]):
        imported("cc-2.jsonl", files.lines_of(lines + more))

    assert stored() == ["Count the boats.", "41", "41, and the buoy is green.", "Thanks.", PROMPT]


def test_after_a_rewind_a_prompt_is_new_if_it_was_taken_back_and_else_repeated(imported):
    kept, taken_back = PROMPT, "And the red one?"
    lines = [
        *SESSION[:3], queued("q1", "r1", kept, source_uuid="s1"), SESSION[4],
        files.claude_code_line("u2", "a2", "Thanks."), queued("q2", "u2", taken_back, source_uuid="s2"), AFTER[2],
        files.claude_code_line("v1", "a2", "No."), queued("q3", "v1", taken_back, source_uuid="s2"),
        queued("q4", "q3", kept, source_uuid="s1"),
    ]  # fmt: skip

    imported("cc-2.jsonl", files.lines_of(lines))

    assert (stored().count(taken_back), stored().count(kept)) == (2, 1)
