"""Files of other programs: each is known by itself, read whole, and never stored twice."""

from __future__ import annotations

import copy
import io
import json
import zipfile

import pytest
import zstandard

from compaction.hosts.branching import Branches
from conversations.audit import Act
from conversations.models import AuditEntry, Conversation, Message, MessagePart
from conversations.types import NewMessage, Role
from lcmsite.importing.history import History
from tests.factories import a_conversation, say
from tests.importing import host_files as files
from tests.lcmsite.callers import lcm

pytestmark = pytest.mark.django_db

CALLS = ["[tool_call Read] {}", "[tool_call Read] {}", "PORT = 5433", "PORT = 5434"]
# What each file shows: its sessions with their texts on the active path, in order.
SHOWN = {
    "OpenCode": {"ses_1": ["Which port?", "It is 5433."]},
    "Gemini CLI": {"gem-1": ["Which port?", "It is 5433."]},
    "Gemini CLI, lines": {"gem-2": ["Which port?", "5433."]},
    "ChatGPT": {"gpt-1": ["Which port?", "It is 5433."]},
    "Claude.ai": {"cai-1": ["Which port?", "It is 5433."]},
    "Claude.ai, branches": {"cai-2": ["Which port?", "It is 5432.", "Are you sure?"]},
    "SWE-agent": {"boats": ["You are a programmer.", "Which port?", "Look.\n```\ncat a.py\n```", "PORT = 5433"]},
    "Claude Code": {"cc-1": ["Which port?", "5433."]},
    "Claude Code, rewound": {"cc-2": ["Which port?", *CALLS, "In a.py.", "It is 5433.", "", "Leave it.", "It stays."]},
    "Claude Code, begun anew": {"cc-2": ["Which host?", "It is db.", "And the port?", "It is 5434."]},
    "Codex": {"codex-1": ["Which port?", ""]},
    "pi": {"pi-1": ["Which port?", "It is 5433."]},
}
OFF_THE_PATH = {
    "Gemini CLI, lines": ["5432."],
    "ChatGPT": ["It is 5432.", "Are you sure?"],
    "Claude.ai, branches": ["It is 5433."],
    "Claude Code, rewound": ["Change it.", "It is 1."],
    "Claude Code, begun anew": ["Which port?", "It is 5433."],
    "pi": ["It is 5432."],
}


@pytest.fixture
def imported(imported):
    """Imports bytes as a file of this name, twice: nothing is stored again."""

    def run(*given):
        report, again = imported(*given), imported(*given)
        assert [each["created"] for each in again["conversations"]] == [0] * len(report["conversations"])
        return report

    return run


def texts_of(conversation, on_path=True):
    """The texts of the parts of type text, or else the contents, on the active path or off it."""
    branches = Branches.from_settings().list_branches(conversation_id=conversation.pk)
    found = []
    for message in Message.objects.filter(conversation=conversation).order_by("seq").prefetch_related("parts"):
        parts = [part for part in message.parts.all() if part.part_type == "text"]
        branch = next(each for each in branches if each.first_seq <= message.seq <= each.last_seq)
        if (message.seq <= branch.active_to_seq) is on_path:
            found.append("".join(part.text_content or "" for part in parts) if parts else message.content)
    return found


@pytest.mark.parametrize("program", SHOWN)
def test_a_file_of_another_program_is_imported_with_its_active_path(imported, program):
    imported(*files.FILES[program])

    found = {each.session_id: each for each in Conversation.objects.all()}
    assert {name: texts_of(each) for name, each in found.items()} == SHOWN[program]
    [conversation] = found.values()
    assert texts_of(conversation, on_path=False) == OFF_THE_PATH.get(program, [])


@pytest.mark.parametrize("session", ["", "all-of-it"])
def test_what_begins_anew_without_a_rewind_is_no_branch(imported, session):
    lines = files.CLAUDE_CODE_BEGINNINGS

    imported("cc-2.jsonl", files.lines_of(lines), *(("--session", session) if session else ()))

    stored = {each.session_id: each for each in Conversation.objects.all()}
    count = sum("message" in line for line in lines)
    assert sum(len(texts_of(each)) for each in stored.values()) == count
    assert stored.keys() == ({session} if session else {"cc-2", "cc-2:sidechain", "cc-3"})
    assert [len(Branches.from_settings().list_branches(conversation_id=each.pk)) for each in stored.values()] == (
        [1] * len(stored)
    )


def test_the_parts_of_an_opencode_session_are_those_of_the_store(imported):
    imported(*files.FILES["OpenCode"])

    [asked, answered] = Message.objects.order_by("seq").prefetch_related("parts")
    assert [part.part_type for part in asked.parts.all()] == ["text", "file"]
    shown = {part.part_type: part for part in answered.parts.all()}
    assert list(shown) == ["step_start", "reasoning", "tool", "text", "patch", "step_finish"]
    tool = shown["tool"]
    assert (tool.tool_name, tool.tool_call_id, tool.tool_status) == ("read", "c1", "completed")
    assert (tool.tool_input, tool.tool_output, tool.tool_title) == ({"filePath": "a.py"}, "PORT = 5433", "a.py")
    assert (shown["step_finish"].step_tokens_in, str(shown["step_finish"].step_cost.normalize())) == (6, "0.01")
    assert answered.metadata["opencode"]["info"]["modelID"] == "m"
    [conversation] = Conversation.objects.select_related("project")
    assert (conversation.title, conversation.project.name) == ("Ports", "/home/ada/boats")


def test_the_database_of_opencode_is_read_with_its_log_and_left_as_it_is(tmp_path):
    path = tmp_path / "opencode.db"
    database = files.opencode_database(path, files.OPENCODE, files.OPENCODE_CHILD)
    before = path.read_bytes()

    first = lcm("--json", "import", str(path))
    again = lcm("--json", "import", str(path))

    assert first.exit_code == again.exit_code == 0, first.err
    assert {each["session_id"]: each["created"] for each in first.json["conversations"]} == {"ses_1": 2, "ses_2": 1}
    assert [each["created"] for each in again.json["conversations"]] == [0, 0]
    child = Conversation.objects.get(session_id="ses_2")
    assert (child.parent.session_id, child.parent_link) == ("ses_1", "subagent")
    assert path.read_bytes() == before
    database.close()


def test_the_export_of_opencode_is_what_its_database_has(tmp_path, imported):
    path = tmp_path / "opencode.db"
    files.opencode_database(path, files.OPENCODE).close()
    imported("opencode.db", path.read_bytes())

    assert imported(*files.FILES["OpenCode"])["conversations"][0]["stored_before"] == 2


def test_an_answer_that_is_under_way_waits_for_the_next_import(imported):
    halfway = copy.deepcopy(files.OPENCODE)
    answer = halfway["messages"][1]
    del answer["info"]["time"]["completed"]
    answer["parts"] = answer["parts"][:2]

    report = imported("ses_1.json", json.dumps(halfway).encode())
    assert (report["conversations"][0]["created"], report["passed_over"]) == (1, {"unfinished": 1})

    report = imported("ses_1.json", json.dumps(files.OPENCODE).encode())
    assert report["conversations"][0]["created"] == 1


def test_a_tree_that_has_grown_goes_on_at_its_branch(imported):
    imported(*files.FILES["ChatGPT"])
    grown = copy.deepcopy(files.CHATGPT)
    mapping = grown[0]["mapping"]
    mapping["u3"] = files.chatgpt_node("u3", "u2", "user", "Tell me.")
    mapping["a3"] = files.chatgpt_node("a3", "u3", "assistant", "5432 or 5433.")
    grown[0]["current_node"] = "a3"

    imported("conversations.json", json.dumps(grown).encode())

    [conversation] = Conversation.objects.all()
    path = ["Which port?", "It is 5432.", "Are you sure?", "Tell me.", "5432 or 5433."]
    assert (texts_of(conversation), texts_of(conversation, on_path=False)) == (path, ["It is 5433."])


def test_a_picture_of_chatgpt_is_kept_as_its_pointer(imported):
    shown = copy.deepcopy(files.CHATGPT)
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 8, "height": 8}
    content = {"content_type": "multimodal_text", "parts": [pointer, "Which port?"]}
    shown[0]["mapping"]["u1"]["message"]["content"] = content

    imported("conversations.json", json.dumps(shown).encode())

    [part] = MessagePart.objects.filter(part_type="file").select_related("message")
    assert (part.file_mime, part.file_url, part.metadata["chatgpt"]) == ("image/*", "sediment://file_1", pointer)
    assert part.message.content == "Which port?"


def test_the_history_of_aider_is_the_session_of_its_directory(imported, tmp_path):
    imported(*files.FILES["aider"])

    [conversation] = Conversation.objects.select_related("project")
    assert (conversation.session_id, conversation.project.name) == (f"aider:{tmp_path}", str(tmp_path))
    messages = Message.objects.order_by("seq")
    assert list(messages.values_list("role", "content")) == [
        ("tool", "Aider v0.86.0\nGit repo: .git with 3 files"),
        ("user", "Which port?\nI mean the database."),
        ("assistant", "It is 5433:\n\n```python\nPORT = 5433\n```"),
        ("tool", "Tokens: 2k sent, 100 received."),
    ]


def test_the_summary_of_a_compaction_is_kept_as_that(imported):
    imported(*files.FILES["Claude Code, rewound"])

    [part] = MessagePart.objects.filter(part_type="compaction").select_related("message")
    assert (part.message.role, part.text_content) == ("assistant", "The port is 5433.")


def test_the_text_of_an_attachment_is_searched_and_shown(imported):
    imported(*files.FILES["Claude.ai"])

    shown = "Which port?\n[file a.txt]\nPORT = 5433"
    assert "PORT = 5433" in lcm("grep", "cai-1", "port 5433").out
    assert shown in lcm("messages", "cai-1").out
    assert "[reasoning] Look." in lcm("messages", "cai-1").out


@pytest.mark.parametrize(
    ("name", "content", "session", "text", "created"),
    [
        (
            "cc-2.jsonl",
            files.lines_of([files.claude_code_line("c1", None, "The port is 5433.", isCompactSummary=True)]),
            "cc-2",
            "The port is 5433.",
            0,
        ),
        (*files.FILES["Claude.ai"], "cai-1", "Which port?\n[file a.txt]", 1),
    ],
    ids=["line", "attachment"],
)
def test_a_message_that_was_read_differently_before_is_not_stored_again(
    imported, tmp_path, name, content, session, text, created
):
    (tmp_path / name).write_bytes(content)
    [first, *_] = History(path=tmp_path / name).entries()
    before = NewMessage(Role.USER, text, idempotency_key=first.key)
    conversation_id = a_conversation(session_id=session).conversation_id
    say(conversation_id, before)

    [report] = imported(name, content)["conversations"]

    assert (report["conversation_id"], report["stored_before"], report["created"]) == (conversation_id, 1, created)


def test_the_title_of_a_transcript_is_that_of_its_conversation_unless_it_has_one(imported):
    summary = {"type": "summary", "summary": "Of another session", "leafUuid": "elsewhere"}
    own = {"type": "summary", "summary": "The port", "leafUuid": "u1"}
    renamed = {"type": "custom-title", "customTitle": "Ports", "sessionId": "cc-2"}
    lines = [summary, files.claude_code_line("u1", None, "Which port?"), own]

    titles = []
    for more in ([], [renamed]):
        imported("cc-2.jsonl", files.lines_of([*lines, *more]))
        titles.append(Conversation.objects.get().title)
        Conversation.objects.update(title=None)
    Conversation.objects.update(title="Mine")
    imported("cc-2.jsonl", files.lines_of([*lines, renamed]))

    assert [*titles, Conversation.objects.get().title] == ["The port", "Ports", "Mine"]


def test_a_message_that_its_host_changed_is_refused_and_not_left_out_silently(imported, tmp_path):
    name, content = files.FILES["Claude.ai"]
    imported(name, content)
    (tmp_path / "changed.json").write_bytes(content.replace(b"It is 5433.", b"It is 6544."))

    refused = lcm("import", str(tmp_path / "changed.json"))

    assert refused.exit_code == 4
    assert "6544" not in lcm("messages", "cai-1").out


def test_the_title_of_a_session_that_this_one_continues_is_not_its_own(imported):
    summary = {"type": "summary", "summary": "Of the other session", "leafUuid": "l1"}

    imported("cc-2.jsonl", files.lines_of([summary, files.claude_code_line("u1", "l1", "Which port?")]))

    assert Conversation.objects.get().title is None


def test_a_title_that_comes_later_is_recorded_as_a_change(imported):
    line = files.claude_code_line("u1", None, "Which port?")
    imported("cc-2.jsonl", files.lines_of([line]))
    before = Conversation.objects.get().updated_at

    imported("cc-2.jsonl", files.lines_of([line, {"type": "summary", "summary": "The port", "leafUuid": "u1"}]))

    conversation = Conversation.objects.get()
    assert conversation.title == "The port" and conversation.updated_at > before
    assert AuditEntry.objects.get(act=Act.CHANGE_CONVERSATION).conversation_id == conversation.pk


@pytest.mark.parametrize(("name", "is_followed"), [("t1.txt", True), ("gone.txt", False), ("link.txt", False)])
def test_an_output_in_a_file_of_its_session_is_the_result(imported, tmp_path, name, is_followed):
    folder = tmp_path / "cc-2" / "tool-results"
    folder.mkdir(parents=True)
    (tmp_path / "other.txt").write_text("Of another.")
    (folder / "t1.txt").write_bytes(b"PORT = 5433\r\n")
    (folder / "link.txt").symlink_to(tmp_path / "other.txt")
    shown = (
        f"<persisted-output>\nOutput too large (34.3KB). Full output saved to: /home/ada/.claude/projects/-boats/cc-2/"
        f"tool-results/{name}\n\nPreview (first 2KB):\nPORT\n...\n</persisted-output>"
    )
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": shown, "is_error": False}]
    line = files.claude_code_line("r1", None, result)

    imported("cc-2.jsonl", files.lines_of([line]))

    output = MessagePart.objects.get().tool_output
    assert output == ("PORT = 5433\r\n" if is_followed else shown)
    assert json.loads(lcm("export", "cc-2", "--format", "claude-code").out) == line


def test_a_rollout_may_be_packed_with_zstandard(imported):
    packed = zstandard.ZstdCompressor().compress(files.lines_of(files.CODEX))

    assert imported("rollout-1.jsonl.zst", packed)["conversations"][0]["created"] == 2
    compacted = Message.objects.order_by("seq").last()
    # What the vendor keeps encrypted has no text; what replaced the history stays with the message.
    assert compacted.metadata["codex"]["inside"]["payload"]["add"]["replacement_history"]


def zipped(method: int = zipfile.ZIP_DEFLATED, /, **files_of_it: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in files_of_it.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), content)
    return packed.getvalue()


LZMA = zipped(zipfile.ZIP_LZMA, conversations_json=b"[]" * 50)
# The data begin after a header of 57 bytes. Python's error for damaged ones is neither an OSError nor a ValueError.
DAMAGED_LZMA = LZMA[:60] + b"\xff" + LZMA[61:]


@pytest.mark.parametrize("name", ["conversations_json", "data__conversations_json"])
def test_an_export_is_imported_as_the_zip_that_the_vendor_sends(imported, name):
    archive = zipped(users_json=b"[]", **{name: files.FILES["ChatGPT"][1]})

    report = imported("export.zip", archive)["conversations"]
    again = imported(*files.FILES["ChatGPT"])["conversations"]

    assert [(each["session_id"], each["created"]) for each in report] == [("gpt-1", again[0]["stored_before"])]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (zipped(users_json=b"[]"), "This zip has no conversations.json. Unzip it"),
        (zipped(conversations_json=b"[" + b" " * 2000 + b"]"), "has more than 1,000 bytes"),
        (zipped(conversations_json=b"[]")[:-30], "The zip cannot be read"),
        (zipped(zipfile.ZIP_BZIP2, conversations_json=b"[]"), "LCM reads only deflated or stored files"),
        (DAMAGED_LZMA, "LCM reads only deflated or stored files"),
    ],
)
def test_a_zip_without_a_readable_export_is_refused(refused, monkeypatch, content, why):
    monkeypatch.setattr("lcmsite.importing.history.MOST_UNZIPPED_BYTES", 1000)

    problem = refused("export.zip", content)

    assert problem["code"] == "malformed_history" and why in problem["detail"]


def test_a_last_line_that_is_being_written_is_taken_by_the_next_import(imported):
    whole = files.lines_of(files.CLAUDE_CODE)

    report = imported("cc-1.jsonl", whole[:-40])
    assert report["conversations"][0]["created"] == 1
    assert report["passed_over"] == {"unfinished last line": 1}

    assert imported("cc-1.jsonl", whole)["conversations"][0]["created"] == 1


def test_standard_input_is_imported_like_a_file():
    first = lcm("--json", "import", "-", stdin=files.lines_of(files.CODEX))
    again = lcm("--json", "import", "-", "--session", "mine", stdin=b'{"role": "user", "content": "x"}\n')

    assert [each["session_id"] for each in first.json["conversations"]] == ["codex-1"]
    assert [each["session_id"] for each in again.json["conversations"]] == ["mine"]


@pytest.mark.parametrize("content", [b"hello\n", b'{"a": 1}\n', b"[]x"])
def test_a_refusal_names_what_can_be_read(refused, content):
    sentence = refused("unknown", content)["detail"]

    for name in ("anthropic", "Claude Code", "Codex", "pi", "OpenCode", "ChatGPT", "aider"):
        assert name in sentence
