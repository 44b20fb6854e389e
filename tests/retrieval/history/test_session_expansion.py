"""From an epoch down to every byte of its sessions, page by page; and only what may be seen."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.errors import Invalid, NotFound
from conversations.models import Message
from conversations.store.read import messages_of
from integrity.retention.erasure import Erasures
from tests.integrity.erasing import erased
from tests.pasts import a_session_summary, a_summary_over
from tests.rejoining import joined
from tests.retrieval.lineages import pages


def items_of(found):
    return [item for page in found for item in page.items]


def below(history, summary, **asked):
    return items_of(pages(history.expand_session, summary_id=summary.pk, **asked))


def test_one_level_down_are_arcs_then_sessions_then_what_a_session_rests_on(history, past):
    arcs = below(history, past.epoch)
    sessions = below(history, past.arcs[1])
    of_session = below(history, past.sessions[0])

    assert [(item.id, item.content, item.level) for item in arcs] == [(arc.pk, arc.content, 1) for arc in past.arcs]
    assert [item.id for item in sessions] == [past.sessions[2].pk, past.sessions[3].pk]
    assert [item.conversation_id for item in sessions] == [each.conversation_id for each in past.conversations[2:4]]
    assert [(item.first_seq, item.last_seq, item.kind) for item in of_session] == [
        (1, 2, "summary"), (3, 3, "message"), (4, 4, "message"), (5, 5, "message"),
    ]  # fmt: skip


def test_all_the_way_down_everything_comes_in_the_order_of_the_past(history, past):
    items = below(history, past.epoch, depth=-1)

    first = past.sessions[0].pk
    assert [item.id for item in items[:2]] == [past.arcs[0].pk, first]
    assert [(item.of, item.level) for item in items[2:6]] == [(first, 3)] * 4
    assert len(items) == 2 + 4 * 5


@pytest.mark.parametrize("token_cap", [7, 64])
def test_every_message_of_an_epoch_comes_back_byte_for_byte(history, past, token_cap):
    found = pages(
        history.expand_session, summary_id=past.epoch.pk, depth=-1, include_messages=True, token_cap=token_cap
    )

    numbers = [each.conversation_id for each in past.conversations[:4]]
    stored = Message.objects.filter(conversation_id__in=numbers).order_by("conversation_id", "seq")
    messages = joined(item for item in items_of(found) if item.kind == "message")
    assert [(each.message_id, each.content, each.parts) for each in messages] == [
        (each.message_id, each.content, each.parts) for each in messages_of([each.pk for each in stored])
    ]
    assert all(page.tokens <= token_cap for page in found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(caps=st.lists(st.integers(1, 120), min_size=1, max_size=5), depth=st.integers(1, 5), messages=st.booleans())
def test_pages_of_any_size_give_what_one_page_gives(history, past, caps, depth, messages):
    asked = {"summary_id": past.epoch.pk, "depth": depth, "include_messages": messages}
    whole = history.expand_session(**asked, token_cap=100_000)

    found, cursor = [], None
    while not found or cursor is not None:
        found.append(history.expand_session(**asked, token_cap=caps[len(found) % len(caps)], cursor=cursor))
        cursor = found[-1].cursor

    contents: dict[str, str] = {}
    for item in items_of(found):
        contents[item.id] = contents.get(item.id, "") + item.content
    assert contents == {item.id: item.content for item in whole.items}


def test_a_cursor_of_another_expansion_is_refused(history, past):
    cursor = history.expand_session(summary_id=past.epoch.pk, token_cap=1).cursor

    with pytest.raises(Invalid) as refusal:
        history.expand_session(summary_id=past.epoch.pk, depth=2, cursor=cursor)

    assert refusal.value.code == "bad_cursor"


def test_what_is_not_there_is_not_found(history):
    for id in ("ses_0000000000000bad", "sum_0000000000000bad", "\0", "msg_1"):
        with pytest.raises(NotFound, match="session summary"):
            history.expand_session(summary_id=id)


def test_a_superseded_summary_opens_still_and_names_what_replaced_it(history, past):
    again = a_session_summary(past.sessions[4].conversation_id, "Again.", supersedes=past.sessions[4])

    opened = history.expand_session(summary_id=past.sessions[4].pk)

    assert opened.superseded_by == again.pk and len(opened.items) == 4


def test_an_erased_message_comes_as_such_from_an_epoch(history, past):
    erased(Erasures.from_settings(), past.conversations[0].conversation_id, from_seq=3, to_seq=3)

    [item] = [each for each in below(history, past.sessions[0]) if each.first_seq == 3]

    assert item.erased and item.content == ""


def test_a_summary_over_one_session_alone_opens_to_its_conversation(history, past):
    arc = a_summary_over(past.sessions[4:], "One alone.")

    assert {item.conversation_id for item in below(history, arc, depth=-1, include_messages=True)} == {
        past.conversations[4].conversation_id
    }
