"""What describe gives of a message's text, page by page."""

from __future__ import annotations

import pytest

from conversations.errors import Invalid
from conversations.models import Message
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, say
from tests.integrity.erasing import erased
from tests.rejoining import joined
from tests.retrieval.lineages import a_graph, engine, message_id, pages

pytestmark = pytest.mark.django_db


@pytest.fixture
def talk() -> int:
    parts = (
        NewPart(PartType.TEXT, text_content="Look at this. " * 40),
        NewPart(PartType.REASONING, text_content="lone \ud800 and \x00", metadata={"b": 1, "a": [1.5, None]}),
    )
    said = [NewMessage(Role.USER, parts=parts), a_tool_call("c1", path="a.py"), a_tool_result("c1", "import os\n" * 90)]
    conversation_id = a_conversation("数据库连接失败 " * 60).conversation_id
    say(conversation_id, *said)
    return conversation_id


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_cold", [False, True])
@pytest.mark.parametrize("cap", [7, 100, 4000])
def test_a_message_that_was_found_is_read_to_the_last_byte_and_no_page_is_above_its_cap(talk, cap, is_cold):
    stored = a_store().list_messages(conversation_id=talk)
    if is_cold:
        Retention.from_settings().archive(conversation_id=talk)

    for message in stored:
        found = pages(engine().describe, id=message.id, token_cap=cap)

        [whole] = joined(found)
        assert (whole.message_id, whole.content, whole.parts) == (message.message_id, message.content, message.parts)
        assert all(page.tokens <= cap for page in found)
        assert [page.complete for page in found] == [False] * (len(found) - 1) + [True]
        assert {page.content_total for page in found} == {len(message.content)}


def test_a_page_has_no_more_than_the_operator_allows(talk):
    page = engine(max_expand_tokens=64).describe(id=message_id(talk, 4), token_cap=10**6)

    assert page.tokens <= 64
    assert page.cursor


def test_a_cursor_of_another_thing_is_refused(talk):
    of_the_first = engine().describe(id=message_id(talk, 1), token_cap=7).cursor
    summary_id = a_graph().first.summary_id

    for id, cursor in (
        (message_id(talk, 2), of_the_first),
        (message_id(talk, 1), f"{of_the_first}x"),
        (summary_id, of_the_first),
        (f"conv_{talk}", "nonsense"),
    ):
        with pytest.raises(Invalid) as refusal:
            engine().describe(id=id, cursor=cursor)
        assert refusal.value.code == "bad_cursor"


def test_of_an_erased_message_there_is_no_text(talk):
    erased(Erasures.from_settings(), talk, from_seq=1, to_seq=1)

    described = engine().describe(id=f"msg_{Message.objects.get(conversation_id=talk, seq=1).pk}")

    assert (described.erased, described.content, described.complete) == (True, "", True)
