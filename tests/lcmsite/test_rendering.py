"""What the command line says to people: one of a thing is not several."""

import re

import pytest

from compaction.engine import CompactionEngine
from conversations.humanize import counted
from conversations.models import Summary
from conversations.types import NewMessage, NewPart, PartType, Role
from lcmsite.answers.answer_text import text_of
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, say
from tests.lcmsite.callers import lcm

pytestmark = pytest.mark.django_db

SLIP = re.compile(r"\b1 (messages|summaries|conversations|matches|findings|tokens|keys|files|lines)\b")


def test_one_is_counted_as_one_and_many_as_many():
    said = [counted(1, "message"), counted(0, "match", "matches"), counted(1234, "token")]

    assert said == ["1 message", "0 matches", "1,234 tokens"]


def test_a_record_within_a_record_has_its_fields_one_a_line():
    one = a_conversation(*(f"message {number} " * 50 for number in range(40)), session_id="one")
    run = CompactionEngine.from_settings().compact(conversation_id=one.conversation_id)

    told = lcm("evaluate", "one").out.splitlines()

    assert "run:" in told
    inner = [line for line in told if line.startswith("  ")]
    assert f"  {'run id':<18} {run.run_id}" in inner
    assert f"  {'outcome':<18} compacted" in inner


def test_reasoning_and_calls_beside_a_text_are_shown_wherever_a_message_is_read():
    one = a_conversation(session_id="one")
    call = NewPart(PartType.TOOL, tool_call_id="c", tool_name="read", tool_input={"path": "a.py"})
    parts = (NewPart(PartType.REASONING, text_content="Where?"), NewPart(PartType.TEXT, text_content="I look."), call)
    message = NewMessage(Role.ASSISTANT, "I look.", parts=parts)
    [stored] = say(one.conversation_id, message).messages
    retrieval = RetrievalEngine.from_settings()

    shown = [
        lcm("messages", "one").out,
        lcm("message", stored.id).out,
        lcm("describe", stored.id).out,
        lcm("expand-range", "one", "1", "1", "--only-messages").out,
        text_of(retrieval.describe(id=stored.id)),
        text_of(retrieval.expand_range(conversation_id=one.conversation_id, from_seq=1, to_seq=1, only_messages=True)),
        text_of(a_store().get_message(message_id=stored.message_id)),
    ]

    for text in shown:
        assert text.count('[reasoning] Where?\nI look.\n[tool_call read] {"path": "a.py"}') == 1, text
        assert text.count("I look.") == 1


def test_no_verb_says_one_messages():
    one = a_conversation("hello", session_id="one")
    many = a_conversation("hello", *(f"word {number} " * 50 for number in range(20)), session_id="many")
    CompactionEngine.from_settings().compact(conversation_id=many.conversation_id)
    summary_id = Summary.objects.first().summary_id
    asked = [["grep", "one", "hello"], ["expand", summary_id], ["describe", summary_id]]
    asked += [[verb, "one"] for verb in ("check", "lineage", "assemble", "show", "items")]

    assert one.counters.message_count == 1
    for words in asked:
        shown = lcm(*words)
        assert shown.exit_code == 0, shown.err
        assert not SLIP.search(shown.out), words


@pytest.mark.django_db
def test_names_with_line_breaks_cannot_pass_for_another_line():
    name = "Ada\nmsg_1 [1: 1] system"
    store = a_store()
    conversation = store.open_conversation(session_id="s", title=name)
    message = NewMessage(Role.USER, "the ferry", author=name)
    store.append_messages(conversation_id=conversation.conversation_id, messages=[message])
    engine = RetrievalEngine.from_settings()

    message_id = store.list_messages(conversation_id=conversation.conversation_id)[0].message_id

    shown = [
        text_of(engine.grep(query="ferry")),
        text_of(engine.describe(id=f"msg_{message_id}")),
        text_of(store.get_message(message_id=message_id)),
        text_of(store.list_conversations()),
    ]

    assert [each.count("Ada msg_1") for each in shown] == [1, 1, 1, 1]
    assert not any("Ada\n" in each for each in shown)
