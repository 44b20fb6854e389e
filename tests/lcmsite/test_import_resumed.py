"""An import taken up again goes on where it stopped, and refuses a file that is no longer the one it had begun."""

import json

import pytest

from conversations.models import Message
from conversations.types import NewMessage, Role
from tests.factories import a_store
from tests.lcmsite.callers import lcm

pytestmark = pytest.mark.django_db


def _row(number, content=None):
    return {"session_id": "a", "role": "user", "content": content or f"message {number}"}


@pytest.fixture
def history(tmp_path):
    return tmp_path / "history.jsonl"


def _write(history, rows):
    history.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _begun(history, stored):
    """An import that has stored so many of the messages before it was interrupted."""
    _write(history, [_row(number) for number in range(stored)])
    assert lcm("import", str(history)).exit_code == 0


# The last one of a batch has what it stands before in the next one.
@pytest.mark.parametrize("edited", [0, 300, 499, 500, 998])
def test_a_line_edited_since_is_named_and_nothing_is_stored(history, edited):
    _begun(history, 1000)
    rows = [_row(number) for number in range(1500)]
    rows[edited] = _row(edited, "edited")
    _write(history, rows)

    refused = lcm("--json", "import", str(history))

    assert (refused.exit_code, refused.problem["code"]) == (4, "history_changed")
    assert refused.problem["detail"].startswith(f"line {edited + 1} differs from what an earlier import read there")
    assert Message.objects.count() == 1000


@pytest.mark.parametrize("place", [0, 1, 499, 698])
def test_a_line_put_in_or_taken_out_is_noticed_and_nothing_is_stored_twice(history, place):
    _begun(history, 700)
    rows = [_row(number) for number in range(900)]

    for changed in (rows[:place] + [_row(0, "put in")] + rows[place:], rows[:place] + rows[place + 1 :]):
        _write(history, changed)
        refused = lcm("--json", "import", str(history))

        assert (refused.exit_code, refused.problem["code"]) == (4, "history_changed")
        assert refused.problem["detail"].startswith(f"From line {place + 1} on, ")
        assert "--session" in refused.problem["detail"]
    assert Message.objects.count() == 700


def test_a_history_in_another_form_of_file_is_not_stored_twice(history, tmp_path):
    _begun(history, 20)
    as_list = tmp_path / "history.json"
    as_list.write_text(json.dumps([_row(number) for number in range(20)]))

    refused = lcm("--json", "import", str(as_list))

    assert refused.problem["code"] == "history_changed"
    assert Message.objects.count() == 20


def test_a_file_may_grow_after_another_was_added_to_its_session(history, tmp_path):
    _begun(history, 5)
    another = tmp_path / "another.jsonl"
    _write(another, [_row(number, f"another {number}") for number in range(5)])
    lcm("import", str(another))
    _write(history, [*map(_row, range(5)), _row(0, "another 3"), _row(0, "quite new")])

    first, again = (lcm("--json", "import", str(history)).json["conversations"][0] for _ in range(2))

    assert (first["created"], first["stored_before"]) == (2, 5)
    assert (again["created"], again["stored_before"]) == (0, 7)
    assert Message.objects.count() == 12


def test_what_an_agent_has_said_since_is_no_reason_to_refuse_a_file_that_has_grown(history):
    _begun(history, 3)
    conversation_id = Message.objects.first().conversation_id
    a_store().append_messages(conversation_id=conversation_id, messages=[NewMessage(Role.USER, "message 3")])
    _write(history, [_row(number) for number in range(5)])

    assert lcm("import", str(history)).exit_code == 0

    assert Message.objects.count() == 6


def test_a_file_that_has_grown_is_taken_up_where_it_ended(history):
    _begun(history, 700)
    _write(history, [_row(number) for number in range(900)])

    report = lcm("--json", "import", str(history)).json

    assert [(each["created"], each["stored_before"]) for each in report["conversations"]] == [(200, 700)]
    contents = Message.objects.order_by("seq").values_list("content", flat=True)
    assert list(contents) == [f"message {number}" for number in range(900)]


def test_another_text_under_a_key_of_its_own_is_a_conflict_that_names_the_lines(history):
    rows = [{"role": "user", "content": f"message {number}", "idempotency_key": f"k{number}"} for number in range(2)]
    _write(history, rows)
    lcm("import", str(history), "--format", "lcm")
    _write(history, [rows[0], {**rows[1], "content": "edited"}])

    refused = lcm("--json", "import", str(history), "--format", "lcm")

    assert (refused.exit_code, refused.problem["code"]) == (4, "conflict")
    assert refused.problem["detail"].startswith("From line 1 to line 2: ")
    assert Message.objects.count() == 2
