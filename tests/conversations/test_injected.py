"""What LCM put into a prompt is not stored again when it comes back, and nothing else is ever left out."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.store.injected import without_injected, wrapped
from conversations.types import NewMessage, NewPart, PartType, Role, SkippedText
from tests.factories import a_conversation, a_store

OURS = wrapped('<summary id="sum_1">Nine ferries.\nAnd a boat.</summary>')


def user(content: str | None = None, *parts: NewPart) -> NewMessage:
    return NewMessage(Role.USER, content, parts)


def text(content: str) -> NewPart:
    return NewPart(PartType.TEXT, text_content=content)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (user(OURS), None),
        (user(f"<system-reminder>\n{OURS}\n</system-reminder>"), None),
        (user(None, text(OURS)), None),
        (user(f"before {OURS} after"), user("before  after")),
        (user(f"{OURS}{OURS}mine"), user("mine")),
        (user(None, text(OURS), text("mine")), user(None, text("mine"))),
        (
            user(None, NewPart(PartType.TOOL, tool_call_id="c", tool_output=OURS)),
            user(None, NewPart(PartType.TOOL, tool_call_id="c", tool_output="")),
        ),
        # Wrapped anew by the host.
        (user(OURS.replace("\n", "\n    ")), None),
    ],
)
def test_injected_text_is_left_out(sent, stored):
    found = without_injected([sent])

    assert list(found.messages) == ([] if stored is None else [stored])
    [skipped] = found.skipped
    assert (skipped.position, skipped.is_whole) == (1, stored is None)


@pytest.mark.parametrize(
    "other",
    [
        OURS.replace("Nine", "Ten"),
        OURS.replace("mark=", "note="),
        f'<lcm_injected mark="{"0" * 32}">mine</lcm_injected>',
        OURS[:-5],
        "<lcm_injected ",
    ],
)
def test_what_only_looks_like_it_is_stored(other):
    message = user(other)

    assert without_injected([message]).messages == (message,)
    assert without_injected([message]).skipped == ()


def test_white_space_around_it_takes_little_memory():
    sent = user(OURS + "\n" * 1_000_000)
    tracemalloc.start()

    assert without_injected([sent]).messages == ()

    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_many_marks_that_are_never_closed_are_read_in_linear_time():
    message = user(OURS.partition("\n")[0] * 100_000)
    began = time.process_time()

    assert without_injected([message]).messages == (message,)

    assert time.process_time() - began < 5


@given(st.text(), st.text(), st.text())
def test_any_text_that_is_marked_is_known_again(before, injected, after):
    found = without_injected([user(before + wrapped(injected) + after)])

    assert [message.content for message in found.messages] in ([before + after], [])
    assert len(found.skipped) == 1


@pytest.mark.django_db
def test_an_append_says_what_it_skipped_and_stores_the_rest():
    conversation_id, store = a_conversation("one").conversation_id, a_store()

    result = store.append_messages(
        conversation_id=conversation_id, messages=[user("two"), user(OURS), user(f"three {OURS}")]
    )
    nothing = store.append_messages(conversation_id=conversation_id, messages=[user(OURS)], expected_seq=3)

    assert [each.content for each in store.list_messages(conversation_id=conversation_id)] == ["one", "two", "three "]
    assert [each.seq for each in result.messages] == [2, 3]
    assert result.skipped == (SkippedText(2, len(OURS), True), SkippedText(3, len(OURS), False))
    assert (nothing.messages, nothing.counters.message_count, len(nothing.skipped)) == ((), 3, 1)
