"""`lcm import`: histories in every form they come in, whole or not at all, and never twice.

An import taken up again goes on where it stopped, and refuses a file that is no longer the one it had begun.
"""

import gzip
import json

import pytest

from conversations.models import Conversation, Message
from lcmsite.importing import importer
from tests.factories import say
from tests.lcmsite.callers import an_api_key, lcm

pytestmark = pytest.mark.django_db

ROWS = [
    {"session_id": "a" if number < 70 else "b", "seq": number, "role": "user" if number % 2 else "assistant",
     "content": f"message {number}", "parts": [{"type": "text", "text": f"message {number}"}],
     "created_at": "2026-01-31T12:00:00Z", "meta": {}}
    for number in range(120)
]  # fmt: skip


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(importer, "BATCH", 50)


def _lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def history(tmp_path):
    file = tmp_path / "history.jsonl"
    file.write_text(_lines(ROWS))
    return file


@pytest.fixture
def imported(tmp_path):
    """Imports a text, or bytes, as a file of this name."""

    def run(given, name="chat.jsonl"):
        file = tmp_path / name
        file.write_bytes(given if isinstance(given, bytes) else given.encode())
        return lcm("--json", "import", str(file))

    return run


def _contents(session_id):
    messages = Message.objects.filter(conversation__session_id=session_id).order_by("seq")
    return list(messages.values_list("content", flat=True))


@pytest.mark.parametrize("packed", [False, True])
def test_a_history_is_imported_into_its_sessions_in_order(imported, packed):
    text = _lines(ROWS).encode()

    report = imported(gzip.compress(text), "history.jsonl.gz").json if packed else imported(text).json

    assert [(each["session_id"], each["created"]) for each in report["conversations"]] == [("a", 70), ("b", 50)]
    assert _contents("a") == [row["content"] for row in ROWS[:70]]
    assert _contents("b") == [row["content"] for row in ROWS[70:]]


def test_an_import_cut_short_names_the_line_and_is_taken_up_again(history):
    whole = history.read_text()
    cut = _lines(ROWS[:75])[:-10] + "\n"
    history.write_text(cut)

    refused = lcm("--json", "import", str(history))

    assert (refused.exit_code, refused.problem["code"]) == (2, "malformed_history")
    assert "line 75" in refused.problem["detail"]
    # The first batch is kept; of the second, nothing.
    assert Message.objects.count() == 50

    history.write_text(whole)
    assert lcm("import", str(history)).exit_code == 0
    assert _contents("a") + _contents("b") == [row["content"] for row in ROWS]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("hello\n", "line 1"),
        ('{"role": "wizard", "content": "x"}\n', "line 1"),
        ('{"role": "user", "content": "x"}\n[1]\n', "line 2"),
        ('[{"role": "user", "content": "x"}, 5]', "item 2"),
        ('[{"role": "user", "content": "x"', "JSON"),
        ('{"messages": [{"role": "user", "content": "x"}, {"role": "?"}]}', "message 2"),
        ('{"role": "user", "content": "x", "seq": 0, "created_at": "soon"}', "created_at"),
        ('{"type": "user", "sessionId": "s", "message": {"role": "user", "content": 7}}\n', "line 1"),
    ],
)
def test_a_history_that_cannot_be_read_is_refused_and_nothing_stored(imported, text, words):
    refused = imported(text)

    assert (refused.exit_code, refused.problem["code"]) == (2, "malformed_history")
    assert words in refused.problem["detail"]
    assert not Message.objects.exists()


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the weather?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    {"role": "assistant", "content": "Sunny."},
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "session_id"),
    [
        (json.dumps(CHAT), "chat"),
        (json.dumps({"messages": CHAT}, indent=2), "chat"),
        (json.dumps({"messages": CHAT, "session_id": "mine"}), "mine"),
        (json.dumps([{"messages": CHAT, "session_id": "mine"}]), "mine"),
        (json.dumps({"messages": CHAT}) + "\n", "chat-1"),
        (_lines(CHAT), "chat"),
    ],
)
def test_chat_completions_are_imported_in_all_their_wrappings(imported, text, session_id):
    assert imported(text).exit_code == 0
    assert Conversation.objects.get().session_id == session_id
    assert [message.role for message in Message.objects.order_by("seq")] == [row["role"] for row in CHAT]
    assert _contents(session_id)[3] == "sunny"


@pytest.mark.parametrize(
    "rows",
    [
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]},
        ],
        [
            {"type": "function_call", "call_id": "x", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "x", "output": "sunny"},
        ],
    ],
)
def test_the_first_message_that_shows_its_format_decides_for_the_history(imported, rows):
    assert imported(_lines([{"role": "user", "content": "What is the weather?"}, *rows])).exit_code == 0
    assert [message.role for message in Message.objects.order_by("seq")] == ["user", "assistant", "tool"]
    assert _contents("chat")[1:] == ["[tool_call weather] {}", "sunny"]


def test_a_session_named_by_the_caller_takes_all(history):
    lcm("import", str(history), "--session", "mine")

    assert list(Conversation.objects.values_list("session_id", flat=True)) == ["mine"]
    assert len(_contents("mine")) == 120


def test_an_import_may_compact_at_once(history):
    report = lcm("--json", "import", str(history), "--compact").json

    assert [each["outcome"] for each in report["compactions"]] == ["compacted", "compacted"]
    assert all(each["tokens_after"] < each["tokens_before"] for each in report["compactions"])


@pytest.mark.parametrize("format", ["neutral", "openai", "openai_responses", "anthropic", "lcm"])
def test_a_message_keeps_its_idempotency_key_and_its_time_in_every_format(tmp_path, format):
    at = "2020-01-01T00:00:00Z"
    row = {"role": "user", "content": "Which port?", "idempotency_key": "turn-1", "created_at": at}
    file = tmp_path / "keyed.jsonl"
    file.write_text(json.dumps(row | ({"type": "message"} if format == "openai_responses" else {})) + "\n")

    created = [lcm("--json", "import", str(file), "--format", format).json["conversations"][0]["created"] for _ in "ab"]

    stored = Message.objects.get()
    assert (created, stored.idempotency_key, stored.created_at.year) == ([1, 0], "turn-1", 2020)


def test_an_import_needs_a_key_that_may_write(history):
    refused = lcm("--api-key", an_api_key(None, "read"), "import", str(history))

    assert (refused.exit_code, Message.objects.exists()) == (5, False)


def _row(number, content=None):
    return {"session_id": "a", "role": "user", "content": content or f"message {number}"}


@pytest.fixture
def growing(tmp_path):
    return tmp_path / "growing.jsonl"


def _write(growing, rows):
    growing.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _begun(growing, stored):
    """An import that has stored so many of the messages before it was interrupted."""
    _write(growing, [_row(number) for number in range(stored)])
    assert lcm("import", str(growing)).exit_code == 0


# The last one of a batch has what it stands before in the next one.
@pytest.mark.parametrize("edited", [0, 49, 50, 98])
def test_a_line_edited_since_is_named_and_nothing_is_stored(growing, edited):
    _begun(growing, 100)
    rows = [_row(number) for number in range(150)]
    rows[edited] = _row(edited, "edited")
    _write(growing, rows)

    refused = lcm("--json", "import", str(growing))

    assert (refused.exit_code, refused.problem["code"]) == (4, "history_changed")
    assert refused.problem["detail"].startswith(f"growing.jsonl, line {edited + 1} differs from")
    assert Message.objects.count() == 100


@pytest.mark.parametrize("place", [0, 49, 68])
def test_a_line_put_in_or_taken_out_is_noticed_and_nothing_is_stored_twice(growing, place):
    _begun(growing, 70)
    rows = [_row(number) for number in range(90)]

    for changed in (rows[:place] + [_row(0, "put in")] + rows[place:], rows[:place] + rows[place + 1 :]):
        _write(growing, changed)
        refused = lcm("--json", "import", str(growing))

        assert (refused.exit_code, refused.problem["code"]) == (4, "history_changed")
        assert refused.problem["detail"].startswith(f"growing.jsonl, from line {place + 1} on: ")
        assert "--session" in refused.problem["detail"]
    assert Message.objects.count() == 70


def test_a_file_may_grow_after_another_was_added_to_its_session(growing, tmp_path):
    _begun(growing, 5)
    another = tmp_path / "another.jsonl"
    _write(another, [_row(number, f"another {number}") for number in range(5)])
    lcm("import", str(another))
    _write(growing, [*map(_row, range(5)), _row(0, "another 3"), _row(0, "quite new")])

    first, again = (lcm("--json", "import", str(growing)).json["conversations"][0] for _ in range(2))

    assert (first["created"], first["stored_before"]) == (2, 5)
    assert (again["created"], again["stored_before"]) == (0, 7)
    assert Message.objects.count() == 12


def test_what_an_agent_has_said_since_is_no_reason_to_refuse_a_file_that_has_grown(growing):
    _begun(growing, 3)
    conversation_id = Message.objects.first().conversation_id
    say(conversation_id, "message 3")
    _write(growing, [_row(number) for number in range(5)])

    assert lcm("import", str(growing)).exit_code == 0

    assert Message.objects.count() == 6


def test_another_text_under_a_key_of_its_own_is_a_conflict_that_names_the_lines(growing):
    rows = [{"role": "user", "content": f"message {number}", "idempotency_key": f"k{number}"} for number in range(2)]
    _write(growing, rows)
    lcm("import", str(growing), "--format", "lcm")
    _write(growing, [rows[0], {**rows[1], "content": "edited"}])

    refused = lcm("--json", "import", str(growing), "--format", "lcm")

    assert (refused.exit_code, refused.problem["code"]) == (4, "conflict")
    assert refused.problem["detail"].startswith("growing.jsonl, from line 1 to line 2: ")
    assert Message.objects.count() == 2
