"""The command line as somebody types it: verbs, exit statuses, and what is shown."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import pytest
from django.utils import timezone
from rich.console import Console

from conversations.models import Message
from lcmsite.catalogue.paging import Page
from lcmsite.cli.program import run
from lcmsite.cli.show_results import show
from lcmsite.cli.terminal_layout import LONGEST_CELL, UNLIMITED_WIDTH, Screen, cell, table
from lcmsite.environment import Environment
from lcmsite.models import ApiKey
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.lcmsite.callers import an_api_key, lcm
from tests.lcmsite.operating import run_lcm, run_python
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation():
    return a_conversation("hello", "hi there", session_id="s1")


def test_a_conversation_is_opened_in_a_workspace_that_was_made_for_it():
    lcm("workspace", "create", "holidays")

    opened = lcm("open", "trip", "--title", "To Rome", "--workspace", "holidays")

    assert opened.exit_code == 0
    assert lcm("--workspace", "holidays", "--json", "list").json["items"][0]["title"] == "To Rome"


def test_a_conversation_is_named_by_number_or_session(conversation):
    a_conversation(session_id=str(conversation.conversation_id + 1000))

    by_number = lcm("--json", "show", str(conversation.conversation_id)).json
    by_session = lcm("--json", "show", "s1").json
    by_id = lcm("--json", "show", f"conv_{conversation.conversation_id}").json
    digits = lcm("--json", "show", f"session:{conversation.conversation_id + 1000}").json

    assert by_number == by_session == by_id
    assert digits["session_id"] == str(conversation.conversation_id + 1000)


def test_messages_are_appended_from_an_argument_a_file_and_standard_input(conversation, tmp_path):
    message = [{"role": "user", "content": "one more"}]
    file = tmp_path / "messages.json"
    file.write_text(json.dumps(message))

    for arguments, stdin in (([json.dumps(message)], b""), ([f"@{file}"], b""), (["-"], json.dumps(message).encode())):
        assert lcm("append", "s1", *arguments, stdin=stdin).exit_code == 0

    assert Message.objects.filter(content="one more").count() == 3


@pytest.mark.parametrize("content", ["\x00", "a\ud800b", "\x1b[31mred", "日本語", "é", "a\tb\nc"], ids=ascii)
def test_any_text_is_shown_without_harm_and_given_exactly_as_json(conversation, content):
    appended = lcm("append", "s1", "-", stdin=json.dumps([{"role": "user", "content": content}]).encode())

    shown = lcm("messages", "s1")
    told = lcm("--json", "messages", "s1").json

    assert appended.exit_code == shown.exit_code == 0
    assert told["items"][-1]["content"] == content
    assert "\x1b" not in shown.out
    assert "\x00" not in shown.out


def test_a_problem_is_shown_without_harm_whatever_text_it_quotes(conversation):
    refused = lcm("append", "s1", json.dumps([{"role": "user", "content": "x", "\x1b]0;title\x07": 1}]))

    assert "messages[0].\\x1b]0;title\\x07: There is no such field" in refused.err


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (["nonsense"], 2, "usage"),
        (["key"], 2, "usage"),
        (["show"], 2, "usage"),
        (["show", "s1", "s2"], 2, "usage"),
        (["messages", "s1", "--limit", "0"], 2, "invalid_params"),
        (["messages", "s1", "--limit", "x"], 2, "invalid_params"),
        (["messages", "s1", "--limit", "-5"], 2, "invalid_params"),
        (["messages", "s1", "--colour", "red"], 2, "usage"),
        (["show", "nope"], 3, "not_found"),
        (["show", "99999999"], 3, "not_found"),
        (["show", "9" * 30], 3, "not_found"),
        (["show", "a\udcffb"], 3, "not_found"),
        (["run", "run_nope"], 3, "not_found"),
        (["message", "sum_1"], 2, "invalid_params"),
        (["append", "s1", "@/nowhere.json"], 2, "unreadable_file"),
        (["append", "s1", "["], 2, "malformed_json"),
        (["append", "s1", "[]"], 2, "invalid"),
        (["store-file", "s1", "/nowhere.bin"], 2, "unreadable_file"),
        (["configure", "s1", "[]"], 2, "invalid_params"),
        (["configure", "s1", '{"colour": 1}'], 2, "invalid"),
        (["import", "/nowhere.jsonl"], 2, "unreadable_file"),
        (["open", "s\x00"], 2, "invalid_params"),
        (["key", "create", "x", "--days", "0"], 2, "invalid"),
        (["key", "revoke", "lcm_nope"], 3, "not_found"),
        (["workspace", "create", "default"], 4, "conflict"),
        (["workspace", "create", ""], 2, "invalid"),
        (["list", "--workspace", "other"], 3, "not_found"),
    ],
)
def test_a_bad_command_is_refused_with_its_status(conversation, arguments, exit_code, code):
    plain, told = lcm(*arguments), lcm("--json", *arguments)

    assert (plain.exit_code, told.exit_code) == (exit_code, exit_code)
    assert told.problem["code"] == code
    assert plain.out == told.out == ""
    assert plain.err.count("\n") == 1
    assert plain.err.startswith("lcm: ")


def test_only_a_text_that_begins_with_a_dash_gets_the_hint_about_dashes(db):
    assert "begins with -" in lcm("find", "s1", "-x").err
    assert "begins with -" not in lcm("timeline", "harbour").err


def test_an_argument_that_is_not_json_is_named(conversation):
    refused = lcm("configure", "s1", "fresh_tail_count=12")

    assert refused.err.startswith("lcm: overrides: This is not JSON")


def test_a_key_holds_for_the_command_line_as_for_rest(conversation):
    theirs = a_conversation("secret", session_id="theirs", workspace=a_workspace("theirs"))
    reader = an_api_key(a_workspace(), "read")

    assert lcm("--api-key", reader, "show", "s1").exit_code == 0
    assert lcm("--api-key", reader, "--json", "append", "s1", "[]").problem["code"] == "forbidden"
    assert lcm("--api-key", reader, "show", str(theirs.conversation_id)).exit_code == 3
    assert lcm("--api-key", reader, "show", "theirs").exit_code == 3
    assert lcm("--api-key", reader, "list", "--workspace", "theirs").exit_code == 5
    for verb in (["key", "list"], ["key", "create", "x"], ["workspace", "list"], ["workspace", "create", "x"]):
        assert lcm("--api-key", reader, *verb).exit_code == 5


def test_a_bad_key_is_refused_as_over_rest(conversation, client):
    key = an_api_key()
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(days=1))

    refused = lcm("--json", "list", "--api-key", key)

    assert (refused.exit_code, refused.problem["code"]) == (5, "key_expired")
    assert refused.problem == client.get("/api/v1/conversations/", headers={"Authorization": f"Bearer {key}"}).json()


def test_keys_are_made_listed_and_taken_back(conversation, client):
    made = lcm("--json", "key", "create", "agent", "--scope", "write", "--days", "3").json
    headers = {"Authorization": f"Bearer {made['key']}"}
    before = client.get("/api/v1/conversations/", headers=headers).status_code

    revoked = lcm("key", "revoke", made["record"]["prefix"])

    assert (before, revoked.exit_code) == (200, 0)
    assert client.get("/api/v1/conversations/", headers=headers).json()["code"] == "key_revoked"
    assert made["key"] not in lcm("key", "list").out
    assert made["record"]["prefix"] in lcm("key", "list").out


def test_a_file_goes_in_and_comes_out_unchanged(conversation, tmp_path):
    file = tmp_path / "data.bin"
    file.write_bytes(bytes(range(256)) * 40)

    stored = lcm("--json", "store-file", "s1", str(file)).json
    first = lcm("--json", "read-file", stored["file_id"], "--length", "100").json

    assert (stored["file_name"], stored["byte_size"]) == ("data.bin", 10240)
    assert lcm("--json", "file", stored["file_id"]).json == stored
    assert first["content"].startswith("AAEC")


START = "import sys; from lcmsite.cli import main; sys.exit(main())"


@pytest.mark.thorough
def test_the_program_starts_by_itself_and_under_manage(tmp_path):
    alone = run_python("-c", START, "--help", LCM_DATA_DIR=str(tmp_path))
    managed = run_lcm(tmp_path, "--help")

    assert (alone.returncode, managed.returncode) == (0, 0)
    assert alone.stdout == managed.stdout
    assert "verbs:" in alone.stdout


@pytest.mark.thorough
def test_the_program_says_what_to_do_where_the_code_was_upgraded_and_its_packages_were_not(tmp_path):
    without = START.replace("import sys;", "import sys; sys.modules['orjson'] = None;")

    refused = run_python("-c", without, "list", LCM_DATA_DIR=str(tmp_path))

    assert refused.returncode == 2
    assert refused.stderr.startswith("lcm: The package 'orjson'") and refused.stderr.count("\n") == 1


def test_a_setting_that_there_is_not_is_refused(settings):
    settings.CONFIGURATION_PROBLEMS = Environment.read({"LCM_COLOUR": "red"}).problems

    refused = lcm("--json", "list")

    assert (refused.exit_code, refused.problem["code"]) == (2, "misconfigured")
    assert "LCM_COLOUR" in refused.err


@pytest.mark.thorough
def test_a_database_that_does_not_answer_is_unavailable_and_named(tmp_path):
    refused = run_lcm(tmp_path, "--json", "list", LCM_DATABASE_URL="postgres://me:hunter2@127.0.0.1:1/none")

    assert refused.returncode == 6
    problem = json.loads(refused.stderr)
    assert problem["code"] == "unavailable"
    assert problem["detail"] == "LCM_DATABASE_URL: the database at 127.0.0.1:1 does not respond (connection refused)."


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as end:
        run(["--version"])

    assert (end.value.code, capsys.readouterr().out) == (0, f"lcm {version('lcm')}\n")


@pytest.mark.parametrize(
    ("arguments", "choices"),
    [
        (["key", "create", "x", "--scope", "root"], "read', 'write', 'admin'"),
        (["user", "create", "ann", "--role", "king"], "reader', 'operator', 'admin'"),
        # No default: a forgotten option must not turn an admin into a reader.
        (["user", "role", "ann"], "--role"),
    ],
)
def test_choices_are_told_as_they_are_typed(arguments, choices):
    refused = lcm(*arguments)

    assert refused.exit_code == 2
    assert choices in refused.err and "<" not in refused.err


@pytest.mark.thorough
def test_a_database_of_our_own_that_does_not_start_is_named_and_says_why(fresh_dir):
    (fresh_dir / "postgres").mkdir()
    # What another program left there.
    (fresh_dir / "postgres" / "server").write_text("no directory")

    refused = run_lcm(fresh_dir, "list")

    assert refused.returncode == 6
    assert refused.stderr.startswith(f"lcm: LCM_DATA_DIR: the database in {fresh_dir} cannot be started: ")
    assert refused.stderr.count("\n") == 1


@dataclass(frozen=True)
class Boat:
    boat_id: int
    name: str
    length: float


@dataclass(frozen=True)
class Weather:
    wind: int
    waves: float


@dataclass(frozen=True)
class Journey:
    boat: Boat | None
    weather: Weather | None
    miles: int


@dataclass(frozen=True)
class Berth:
    path: str
    detail: dict[str, Any]


def columns_of(rows: Sequence[Any]) -> list[str]:
    return [str(column.header) for column in table(rows).columns]


def test_a_record_within_a_record_becomes_the_columns_that_name_it_or_all_of_its_own():
    rows = [Journey(None, None, 3), Journey(Boat(7, "Ann", 9.5), Weather(12, 0.4), 40)]
    console = Console(width=100)

    with console.capture() as shown:
        console.print(table(rows))

    # What names a record stands first.
    assert columns_of(rows[1:]) == ["boat id", "name", "wind", "waves", "miles"]
    assert set(columns_of(rows)) == set(columns_of(rows[1:]))
    assert all(each in shown.get() for each in ("7", "Ann", "12", "0.4", "40"))
    assert "9.5" not in shown.get()


@pytest.mark.parametrize(("width", "line_count"), [(100, 3), (20, 7)])
def test_records_stand_one_below_the_other_where_a_table_is_too_wide(width, line_count):
    rows = [Boat(7, "Ann", 9.5), Boat(8, "Bea of the Northern Harbour", 8.25)]
    console = Console(width=width)

    with console.capture() as shown:
        Screen(console).table(rows)

    lines = shown.get().splitlines()
    assert len(lines) == line_count
    assert any("Bea of the Northern Harbour" in line for line in lines)
    assert sum("boat id" in line for line in lines) == (1 if width == 100 else 2)


def test_a_table_shows_objects_and_in_a_pipe_whole_texts_without_spaces_at_the_ends():
    rows = [Berth("a" * 200, {}), Berth("b", {"pier": 7, "note": "n" * 90})]

    for width, whole in ((400, False), (UNLIMITED_WIDTH, True)):
        console = Console(width=width, file=io.StringIO())
        Screen(console).table(rows)
        head, first, second = console.file.getvalue().splitlines()

        assert head.split() == ["path", "detail"]
        assert ("a" * 200 in first) == whole
        assert "pier 7, note nnn" in second and second.rstrip().endswith("…")
        assert (head + first == (head + first).rstrip()) or not whole
    assert columns_of(rows[:1]) == ["path"]


@pytest.mark.parametrize("value", ["boat " * 40, ["boat"] * 40, {f"boat {n}": n for n in range(40)}])
def test_a_cell_is_one_short_line_whatever_it_holds(value):
    assert len(cell(value)) == LONGEST_CELL and cell(value).endswith("…")
    assert len(cell(value, longest=None)) > LONGEST_CELL


def test_browse_says_of_which_conversation():
    number = a_conversation("hello", title="To Rome", session_id="rome").conversation_id

    shown = lcm("browse").out.splitlines()
    head = next(line for line in shown if "conversation id" in line)
    row = shown[shown.index(head) + 1]

    assert head.split()[:6] == ["conversation", "id", "session", "id", "title", "system"]
    assert row.split()[:4] == [str(number), "rome", "To", "Rome"]


def test_a_journal_whose_entries_are_in_other_files_says_how_to_list_these(conversation):
    lcm("append-journal", "s1", '[{"uuid": "a1", "type": "user"}]', "--subpath", "agents/one")

    shown, listed = lcm("journal", "s1"), lcm("journal", "s1", "--subpath", "agents/one")

    assert shown.out == "Nothing.\n" and "lcm journal-subpaths" in shown.err
    assert "a1" in listed.out and listed.err == ""


def test_the_audit_log_shows_the_details_of_its_entries(conversation):
    lcm("rebuild", "s1")

    shown = lcm("audit", "--act", "rebuild").out

    assert shown.splitlines()[0].split()[-1] == "detail" and "removed 0" in shown


def test_list_says_how_much_was_said():
    a_conversation("hello", "hi there", session_id="rome")

    head, row = lcm("list").out.splitlines()[:2]

    assert "message count" in head and "total tokens" in head
    assert "rome" in row and " 2 " in row


def test_messages_that_are_missing_from_a_page_are_named_but_not_from_a_choice_of_messages(conversation):
    say(conversation.conversation_id, "and you?")
    first, _, third = a_store().list_messages(conversation_id=conversation.conversation_id)

    def shown(messages):
        stream = io.StringIO()
        show(messages, stream)
        return stream.getvalue()

    damaged = Page([first, third], cursor_of=str, more=False)
    assert "[2] missing: not in the database" in shown(damaged)
    assert "missing" not in shown([third, first]) + shown([first, third])


def test_a_leaf_opened_without_its_messages_names_the_option_that_shows_them(conversation):
    shown = lcm("expand", a_summary_of(a_store(), conversation.conversation_id, seqs=[1, 2]).summary_id).out

    assert "2 messages" in shown and "include_messages" in shown
