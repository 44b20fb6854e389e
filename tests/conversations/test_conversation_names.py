"""Which conversation a number, an id or a session names, on every face."""

from __future__ import annotations

import pytest

from conversations.errors import Invalid, NotFound
from conversations.scope import Scope, conversation_named
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_workspace

pytestmark = pytest.mark.django_db


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
