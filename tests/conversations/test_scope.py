"""What a caller may see, and which conversation a number, an id or a session names."""

from __future__ import annotations

import pytest
from django.db import transaction

from conversations.errors import Invalid, NotFound
from conversations.models import Conversation, FileReference, LargeFile, Message, Workspace
from conversations.scope import Scope, conversation_named
from conversations.store.conversations import ConversationStore
from conversations.types import NewMessage, NewPart, PartType, Role
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, a_workspace
from tests.summaries import a_new_summary, a_summary_of

pytestmark = pytest.mark.django_db

EVERYTHING = Scope()


@pytest.fixture
def theirs() -> dict[str, object]:
    """Ids of one of everything that belongs to another workspace."""
    conversation = a_conversation("secret", "more", session_id="theirs", workspace=a_workspace("theirs"))
    conversation_id = conversation.conversation_id
    file = LargeFile.objects.create(file_id=f"file_{1:016}", conversation_id=conversation_id, storage_uri="x")
    return {
        "conversation": conversation_id,
        "message": Message.objects.filter(conversation_id=conversation_id).first().pk,
        "summary": a_summary_of(a_store(a_workspace("theirs")), conversation_id, seqs=[1]).summary_id,
        "file": file.file_id,
    }


UNKNOWN = {
    "conversation": [0, -1, 2**62, 2**63, -(2**80), 10**100],
    "message": [0, 2**63, 10**100],
    "summary": ["sum_0", "", "a\x00b", "\ud800", "x" * 10_000, "sum_'; --"],
    "file": ["file_0", "", "\x00", "../../etc/passwd"],
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_somebody_elses_is_as_unknown_as_what_is_not_there(kind, theirs):
    ours = Scope(a_workspace("ours").pk)
    lookup = getattr(ours, kind)
    refusals = []

    for id in (theirs[kind], *UNKNOWN[kind]):
        with pytest.raises(NotFound) as refusal:
            lookup(id)
        refusals.append(refusal.value)

    assert {refusal.code for refusal in refusals} == {"not_found"}
    assert all(refusal.detail.endswith("that you may see.") for refusal in refusals)
    assert all(len(refusal.detail) < 200 for refusal in refusals)


@pytest.mark.parametrize("kind", UNKNOWN)
def test_the_owner_and_the_operator_see_it(kind, theirs):
    owner = Scope(a_workspace("theirs").pk)

    for scope in (owner, EVERYTHING):
        assert getattr(scope, kind)(theirs[kind]).pk == theirs[kind]


@pytest.mark.parametrize(("model", "count"), [(Workspace, 1), (Conversation, 1), (Message, 2)])
def test_a_query_is_narrowed_to_the_workspace(model, count):
    ours = a_workspace("ours")
    a_conversation("one", "two", workspace=ours)
    a_conversation("three", workspace=a_workspace("theirs"))

    assert Scope(ours.pk).narrow(model.objects.all()).count() == count
    assert Scope(ours.pk).filter_rows(model.objects.all(), conversation_id=None).count() == count
    assert EVERYTHING.narrow(model.objects.all()).count() > count


def test_no_verb_of_the_store_reaches_into_another_workspace(theirs):
    store = a_store(a_workspace("ours"))
    conversation_id, message_id, summary_id = theirs["conversation"], theirs["message"], theirs["summary"]
    new = a_new_summary(conversation_id)
    verbs = {
        # Those that are operations, too, are tried by every face (tests/lcmsite/faces).
        "append_messages": {"conversation_id": conversation_id, "messages": [NewMessage(Role.USER, "x")]},
        "create_message": {"conversation_id": conversation_id, "message": NewMessage(Role.USER, "x")},
        "create_message_parts": {"message_id": message_id, "parts": [NewPart(PartType.STEP_START)]},
        "append_context_message": {"conversation_id": conversation_id, "message_id": message_id},
        "replace_context_range_with_summary": {
            "conversation_id": conversation_id,
            "summary_id": summary_id,
            "source_count": 1,
            "item_tokens": 1,
        },
        "link_summary_to_messages": {"summary_id": summary_id, "message_ids": [message_id]},
        "link_summary_to_parents": {"summary_id": summary_id, "source_ids": [summary_id]},
        "write_summary": {"summary": new, "message_ids": [], "source_ids": [], "item_tokens": 1, "mark": None},
        "open_conversation": {"session_id": "ours", "parent_session_id": "theirs"},
        "get_summary": {"summary_id": summary_id},
        "get_summary_children": {"summary_id": summary_id},
        "get_summary_messages": {"summary_id": summary_id},
    }

    for verb, arguments in verbs.items():
        with pytest.raises(NotFound), transaction.atomic():
            getattr(store, verb)(**arguments)

    ours = a_conversation(workspace=a_workspace("ours")).conversation_id
    named = NewMessage(Role.USER, parts=(NewPart(PartType.FILE, file_url=theirs["file"]),))
    store.append_messages(conversation_id=ours, messages=[named])
    assert not FileReference.objects.exists()
    assert Message.objects.filter(conversation_id=conversation_id).count() == 2


def test_two_workspaces_may_use_the_same_session_id():
    stores = [a_store(a_workspace(name)) for name in ("ours", "theirs")]

    records = [store.open_conversation(session_id="same") for store in stores]

    assert records[0].conversation_id != records[1].conversation_id
    found = [store.find_conversation(session_id="same") for store in stores]
    assert [each.conversation_id for each in found] == [each.conversation_id for each in records]
    assert [len(store.list_conversations()) for store in stores] == [1, 1]


def test_a_conversation_needs_a_workspace():
    with pytest.raises(Invalid, match="workspace"):
        ConversationStore.from_settings().open_conversation(session_id="nobody's")


def found(given: str) -> int:
    """The conversation that is named, which describe names in the same way."""
    scope = Scope(a_workspace().pk)
    number = conversation_named(given, scope=scope)
    assert RetrievalEngine.from_settings(scope).describe(id=given).id == f"conv_{number}"
    return number


def test_a_conversation_is_named_by_number_id_or_session():
    number = a_conversation(session_id="harbour").conversation_id

    assert {found(each) for each in (str(number), f"conv_{number}", "harbour", "session:harbour")} == {number}


def test_a_number_of_no_conversation_is_a_session():
    for session_id in ("123456", "conv_123456", "007"):
        number = a_conversation(session_id=session_id).conversation_id

        assert found(session_id) == found(f"session:{session_id}") == number


def test_a_number_that_is_also_the_session_of_another_conversation_is_refused():
    number = a_conversation(session_id="harbour").conversation_id
    other = a_conversation(session_id=str(number)).conversation_id

    with pytest.raises(Invalid, match=f"conv_{number} or session:{number}"):
        found(str(number))
    assert (found(f"conv_{number}"), found(f"session:{number}")) == (number, other)


def test_an_id_comes_before_a_session_of_that_name():
    number = a_conversation(session_id="harbour").conversation_id
    other = a_conversation(session_id=f"conv_{number}").conversation_id

    assert (found(f"conv_{number}"), found(f"session:conv_{number}")) == (number, other)


def test_a_conversation_of_another_workspace_makes_no_number_ambiguous():
    foreign = a_conversation(session_id="harbour", workspace=a_workspace("elsewhere")).conversation_id
    own = a_conversation(session_id=str(foreign)).conversation_id

    assert found(str(foreign)) == own
    for unknown in ("harbour", f"conv_{foreign}", "9" * 30, "", "a\0b", "\ud800"):
        with pytest.raises(NotFound):
            conversation_named(unknown, scope=Scope(a_workspace().pk))
