"""Files that are cut short, damaged, in another encoding or changed: nothing is lost without a word."""

from __future__ import annotations

import copy
import gzip
import io
import json
import tracemalloc
from contextlib import closing
from typing import Any

import pytest
import zstandard

from conversations.formats.documents import gemini
from conversations.models import Conversation, JournalEntry, Message
from lcmsite.importing.zstandard_file import ZstandardFile
from tests.importing import host_files as files
from tests.lcmsite.callers import lcm

pytestmark = pytest.mark.django_db

LINES = "".join(f'{{"role": "user", "content": "message {number:0300}"}}\n' for number in range(400)).encode()
AIDER = files.AIDER.encode()


def cut_short(packed: bytes) -> bytes:
    return packed[: len(packed) // 2]


def damaged(packed: bytes) -> bytes:
    return packed[:-6] + bytes([packed[-6] ^ 255]) + packed[-5:]


@pytest.fixture
def refused(refused):
    """Imports bytes as a file of this name; returns the code and the sentence of the refusal."""
    return lambda *given: tuple(map(refused(*given).get, ("code", "detail")))


@pytest.mark.parametrize("harmed", [cut_short, damaged])
@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("h.jsonl.zst", zstandard.ZstdCompressor(write_checksum=True).compress(LINES)),
        ("h.jsonl.gz", gzip.compress(LINES)),
        (".aider.chat.history.md.gz", gzip.compress(AIDER)),
    ],
)
def test_a_packed_file_that_is_cut_short_or_damaged_is_refused_with_its_line(refused, name, packed, harmed):
    code, sentence = refused(name, harmed(packed))

    assert code == "malformed_history"
    assert sentence.startswith(f"{name}, line ")
    assert "damaged or incomplete" in sentence


def test_several_frames_of_zstandard_are_one_file(imported):
    packed = b"".join(zstandard.compress(part) for part in (LINES[:70_000], b"", LINES[70_000:]))

    assert imported("h.jsonl.zst", packed)["conversations"][0]["created"] == 400


def test_repetitive_text_in_zstandard_is_unpacked_piece_by_piece():
    packed = zstandard.compress(bytes(100 * 1024**2))
    tracemalloc.start()

    unpacked = io.BufferedReader(ZstandardFile(io.BytesIO(packed)))
    size = sum(map(len, iter(lambda: unpacked.read(65536), b"")))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (size, peak < 40 * 1024**2) == (100 * 1024**2, True)


@pytest.mark.parametrize("program", ["OpenCode", "ChatGPT", "SWE-agent", "aider", "Claude Code"])
def test_a_byte_order_mark_is_no_part_of_a_file(imported, program):
    name, content = files.FILES[program]
    created = imported(name, content)["conversations"][0]["created"]

    again = imported(name, b"\xef\xbb\xbf" + content)

    assert [each["stored_before"] for each in again["conversations"]] == [created]


def test_a_file_in_utf_16_is_refused_with_the_remedy(refused):
    code, sentence = refused("h.jsonl", LINES.decode().encode("utf-16"))

    assert (code, sentence[:67]) == (
        "malformed_history",
        "h.jsonl, line 1: The file is in UTF-16. Convert it to UTF-8, such a",
    )


def test_a_ledger_is_refused_with_the_command_that_imports_it(refused):
    ledger = b'{"type":"header","format":"lcm-ledger","version":2}\n'

    assert "use `lcm ledger import`" in refused("l.jsonl", ledger)[1]


def claude_ai(*messages: dict[str, Any]) -> bytes:
    return json.dumps([files.CLAUDE_AI_TREE[0] | {"chat_messages": messages}]).encode()


def test_a_tree_in_which_a_message_cannot_be_reached_is_refused(refused):
    first = files.claude_ai_message("m1", "", "human", "Which port?")
    circle = [files.claude_ai_message("m2", "m3", "human", "a"), files.claude_ai_message("m3", "m2", "human", "b")]

    assert "Two messages have the id m1." in refused("conversations.json", claude_ai(first, first))[1]
    assert "The message m2 comes before itself." in refused("conversations.json", claude_ai(first, *circle))[1]
    assert not Message.objects.exists()


@pytest.mark.parametrize("tree", [files.CHATGPT[0], files.CLAUDE_AI_TREE[0]], ids=["ChatGPT", "Claude.ai"])
def test_a_message_that_changed_on_a_branch_is_named_and_the_other_conversations_are_imported(imported, refused, tree):
    imported("conversations.json", json.dumps([tree]).encode())
    text = json.dumps(tree).replace("It is 5432.", "It is 1.")
    others = [{**tree, "id": name, "conversation_id": name, "uuid": name} for name in ("other-1", "other-2")]

    code, sentence = refused("conversations.json", json.dumps([others[0], json.loads(text), others[1]]).encode())

    assert code == "history_changed"
    where = "conversations.json: Since an earlier import, these messages have changed: item 2, message 2. "
    assert sentence.startswith(where)
    assert Message.objects.filter(content="It is 5432.").count() == 3
    assert not Message.objects.filter(content="It is 1.").exists()


def test_a_malformed_conversation_of_an_export_does_not_stop_the_others(refused):
    strange = {"id": "s", "current_node": "u", "mapping": {"u": files.chatgpt_node("u", None, "robot", "Hello.")}}

    code, sentence = refused("conversations.json", json.dumps([strange, *files.CHATGPT, strange]).encode())

    assert code == "malformed_history"
    assert sentence.startswith("conversations.json, item 1: mapping.u.message.author.role must be one of")
    assert sentence.endswith("The file has 2 such conversations; all others are imported.")
    assert lcm("messages", "gpt-1").exit_code == 0


@pytest.mark.parametrize("damage", [
    {"UPDATE part SET data = json_set(data, '$.state.input', json(?)) WHERE id = 'prt_5'": "[" * 300 + "]" * 300},
    {f"UPDATE {table} SET {column} = ? WHERE {column} = 'ses_1'": "s" * 900
     for table, column in (("session", "id"), ("message", "session_id"), ("part", "session_id"))},
    {"INSERT INTO message SELECT id, session_id, ?, data FROM message WHERE id = 'msg_1'": 1},
], ids=["a value", "a name", "an id twice"])  # fmt: skip
def test_a_session_that_cannot_be_stored_does_not_stop_the_others(refused, tmp_path, damage):
    with closing(files.opencode_database(tmp_path / "o.db", files.OPENCODE, files.OPENCODE_CHILD)) as database:
        for statement, value in damage.items():
            database.execute(statement, [value])
        database.commit()

    code, sentence = refused("o.db", (tmp_path / "o.db").read_bytes())

    assert code == "malformed_history"
    assert sentence.endswith("The file has 1 such conversations; all others are imported.")
    assert [each.content for each in Message.objects.all()] == ["Look for it."]
    assert Conversation.objects.get().session_id == "ses_2"


def test_values_of_another_type_are_refused_with_a_reason(refused, tmp_path):
    with closing(files.opencode_database(tmp_path / "o.db", files.OPENCODE)) as database:
        database.execute("UPDATE message SET data = NULL")
        database.commit()

    of_database = refused("o.db", (tmp_path / "o.db").read_bytes())
    of_document = refused("s.jsonl", files.lines_of([*files.GEMINI_LINES, {"id": "a3", "type": []}]))

    assert [code for code, _ in (of_database, of_document)] == ["malformed_history", "malformed_history"]


@pytest.mark.parametrize("data", [None, b"[]", b'{"type": "te', b'{"type": "\xff"}', b"{}"])
def test_a_malformed_session_of_a_database_does_not_stop_the_others(refused, tmp_path, data):
    with closing(files.opencode_database(tmp_path / "o.db", files.OPENCODE, files.OPENCODE_CHILD)) as database:
        database.execute("UPDATE part SET data = CAST(? AS TEXT) WHERE id = 'prt_4'", [data])
        database.commit()

    code, sentence = refused("o.db", (tmp_path / "o.db").read_bytes())

    assert code == "malformed_history"
    assert sentence.startswith("o.db, session ses_1")
    assert sentence.endswith("The file has 1 such conversations; all others are imported.")
    assert [each.content for each in Message.objects.all()] == ["Look for it."]


def test_a_long_session_of_gemini_is_built_with_few_comparisons_of_ids():
    class Id(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Id.compared += 1
            return str(self) == str(other)

    lines = [{**files.GEMINI_LINES[1], "id": Id(f"u{number}")} for number in range(300)]

    document = gemini.built([files.GEMINI_LINES[0], *lines, {"$rewindTo": Id("u0")}, lines[1]])

    assert Id.compared < 4 * len(lines)
    assert len(document["messages"]) == 300
    assert document["$head"] == "u1"


def test_a_malformed_conversation_is_not_in_the_journal_of_the_next(refused):
    good = {"task_id": 2, "traj": [{"role": "user", "content": "Hello."}]}

    refused("runs.json", json.dumps([{"task_id": 1, "traj": [{"role": "robot"}]}, good]).encode())

    assert [json.loads(each.entry) for each in JournalEntry.objects.all()] == [good]


def test_new_fields_in_a_message_of_a_program_are_no_change(imported):
    chat = copy.deepcopy(files.CLAUDE_AI[0])
    imported("conversations.json", json.dumps([chat]).encode())
    chat["chat_messages"][1]["content"][3]["start_timestamp"] = files.ISO
    chat["chat_messages"].append(files.claude_ai_message("m3", "m2", "human", "Are you sure?"))

    report = imported("conversations.json", json.dumps([chat]).encode())

    assert [(each["created"], each["stored_before"]) for each in report["conversations"]] == [(1, 2)]


@pytest.mark.parametrize("program", ["Claude Code, rewound", "Codex", "pi", "Gemini CLI, lines"])
def test_broken_lines_of_a_transcript_are_named_and_the_others_imported(imported, program):
    name, content = files.FILES[program]
    first, *middle, last = content.splitlines(keepends=True)
    created = sum(each["created"] for each in imported(name, content, "--session", "whole")["conversations"])
    cut = [first[: len(first) // 2] + b"\n", b"\x00" * 20 + first]

    report = imported(name, b"".join([first, cut[0], *middle, cut[1], last]), "--session", "s")
    ended = imported(name, b"".join([first, *middle, last, cut[0]]), "--session", "t")

    lines = 2 + len(middle)
    assert (report["broken_lines"], ended["broken_lines"]) == ([2, lines + 1], [lines + 1])
    assert [each["created"] for each in report["conversations"] + ended["conversations"]] == [created] * 2


def test_a_last_line_that_was_broken_is_imported_when_it_is_whole(imported):
    name, whole = files.FILES["Claude Code"]

    first = imported(name, whole[:-40] + b"\n")
    again = imported(name, whole)

    assert [(each["conversations"][0]["created"], each["broken_lines"]) for each in (first, again)] == [
        (1, [2]),
        (1, []),
    ]


@pytest.mark.parametrize("line", [b'{"type": NaN}\n', b'{"a": 1, "a": 2}\n', b"[" * 100_000 + b"]" * 100_000 + b"\n"])
def test_a_line_of_a_transcript_that_is_json_but_cannot_be_stored_refuses_the_file(refused, line):
    name, content = files.FILES["Claude Code"]

    code, detail = refused(name, content + line)

    assert code == "malformed_history" and "line 3" in detail


@pytest.mark.parametrize("kind, message", [("progress", {"role": "user"}), ("user", {"role": "tool", "content": [""]})])
def test_a_line_of_claude_code_with_another_message_does_not_stop_the_others(imported, kind, message):
    strange = files.claude_code_line("u9", None, None, role=kind, message=message)

    report = imported("cc-1.jsonl", files.lines_of([strange, *files.CLAUDE_CODE]))

    assert [each["created"] for each in report["conversations"]] == [2]


def test_a_time_that_is_none_is_refused_with_its_place(refused):
    message = files.claude_ai_message("m1", "", "human", "Which port?") | {"created_at": "soon"}

    assert "chat_messages[0].created_at must be a time" in refused("conversations.json", claude_ai(message))[1]


def test_an_object_with_an_empty_session_is_of_the_session_of_its_file(imported):
    row = {"session_id": "", "messages": [{"role": "user", "content": "Which port?"}]}

    report = imported("boats.json", json.dumps(row, indent=2).encode())

    assert [each["session_id"] for each in report["conversations"]] == ["boats"]
