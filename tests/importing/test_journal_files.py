"""Files of hosts come out of LCM as they came in: every line, whatever it holds, however often they are imported."""

from __future__ import annotations

import copy
import gzip
import json
from functools import reduce
from operator import getitem

import pytest

from conversations.errors import NotFound
from conversations.models import Conversation, JournalEntry, Message
from conversations.store.journal import Journal
from tests.conversations.real_data import DATA, needs_data
from tests.factories import a_conversation
from tests.importing import host_files as files
from tests.lcmsite.callers import lcm

pytestmark = pytest.mark.django_db

MOST = 65_536


def line(number, text, **own):
    return {
        "type": "user",
        "sessionId": "s1",
        "uuid": f"u{number}",
        "timestamp": f"2026-03-01T10:{number:02}:00.000Z",
        "message": {"role": "user", "content": text},
        **own,
    }


def rows_of(text):
    return [json.loads(each) for each in text.splitlines()]


def exported(session_id, format="journal", *more):
    found = lcm("export", session_id, "--format", format, *more)
    assert found.exit_code == 0, found.err
    return rows_of(found.out)


@pytest.fixture
def imported(imported):
    """Imports the lines of a file of this name."""
    return lambda rows, name="s1.jsonl": imported(name, files.lines_of(rows))


TALK = [
    {"type": "file-history-snapshot", "messageId": "m0", "snapshot": {"n": 1.50, "half": "\ud800"}},
    line(1, "Which port?"),
    line(2, "It is 5433."),
    # A host may write the same line twice, and lines behind the last message.
    line(2, "It is 5433."),
    {"type": "summary", "summary": "Ports", "leafUuid": "u2"},
]


def test_a_file_comes_back_line_by_line_with_those_that_hold_no_message(imported):
    imported(TALK)

    assert exported("s1") == TALK


def test_a_file_that_grows_is_continued_and_no_line_is_kept_twice(imported):
    imported(TALK[:2])
    imported(TALK[:2])
    imported(TALK)

    assert exported("s1") == TALK
    assert JournalEntry.objects.count() == len(TALK)


def test_a_file_that_was_written_anew_is_kept_in_both_versions(imported):
    anew = [*TALK[:4], {"type": "summary", "summary": "Another title", "leafUuid": "u2"}, line(3, "Thanks.")]
    imported(TALK)
    imported(anew)
    imported([*anew, line(4, "Bye.")])

    assert exported("s1") == [*anew, line(4, "Bye.")]
    assert exported("s1", "journal", "--subpath", "") == TALK


def test_another_file_of_the_session_is_apart(imported):
    imported(TALK)
    agent = [line(7, "Look for it.", isSidechain=True, agentId="a1")]
    imported(agent, "agent-a1.jsonl")

    assert exported("s1") == TALK
    assert exported("s1:a1") == agent
    refused = lcm("export", "s1", "--format", "journal", "--subpath", "agent-a1")
    assert refused.exit_code != 0 and "''" in refused.err


@pytest.mark.parametrize(
    "own",
    [
        {"toolUseResult": {"stdout": "x" * MOST, "code": 0}},
        {"toolUseResult": [{"file": "y" * 100}] * 1000},
        {f"field{number}": "z" * 2_000 for number in range(60)},
        {"small": 1, "cwd": "/home/ada/boats" * 6_000},
    ],
)
def test_a_line_with_large_metadata_is_whole_in_the_journal_and_the_message_keeps_what_fits(imported, own):
    large = line(2, "It is 5433.", **own)
    imported([TALK[1], large])

    message = Message.objects.get(content="It is 5433.")
    assert message.metadata["journal"] == {"subpath": "", "position": 2}
    assert 100 < len(json.dumps(message.metadata)) <= MOST
    assert exported("s1") == [TALK[1], large]
    assert exported("s1", "claude-code")[1] == {**large, "parentUuid": "u1"}
    imported([TALK[1], large])
    assert Message.objects.count() == 2


@pytest.mark.parametrize(
    ("program", "name", "path"),
    [("OpenCode", "ses_1", ("messages", 0, "info")), ("Gemini CLI", "gem-1", ("messages", 2)),
     ("ChatGPT", "gpt-1", (0, "mapping", "u1", "message"))],
)  # fmt: skip
def test_a_row_of_a_document_with_large_metadata_is_whole_in_the_journal_once(tmp_path, program, name, path):
    document = json.loads(files.FILES[program][1])
    reduce(getitem, path, document)["own"] = "y" * MOST
    file = files.put(tmp_path, "large.json", json.dumps(document).encode())
    assert [lcm("import", str(file)).exit_code for _ in range(2)] == [0, 0]

    [message] = Message.objects.exclude(metadata__journal=None)
    assert message.metadata["journal"] == {"subpath": "large", "position": 1}
    assert len(json.dumps(message.metadata)) <= MOST
    [row] = exported(name, "journal", "--subpath", "large")
    assert row in (reduce(getitem, path[:depth], document) for depth in range(len(path) + 1))


def test_a_row_of_another_program_is_no_line_of_an_exported_transcript(tmp_path):
    document = {**files.GEMINI, "messages": [{**files.GEMINI["messages"][0], "own": "y" * MOST}]}

    assert lcm("import", str(files.put(tmp_path, "large.json", json.dumps(document).encode()))).exit_code == 0

    [row] = exported("gem-1", "claude-code")
    assert (row["type"], row["message"]["content"][0]["text"]) == ("user", "Which port?")


def test_a_patch_of_very_many_files_is_imported_with_their_names_as_its_text(tmp_path):
    document = copy.deepcopy(files.OPENCODE)
    named = [f"/home/{'x' * 120}/{number}.py" for number in range(600)]
    document["messages"][1]["parts"][4]["files"] = named
    file = files.put(tmp_path, "large.json", json.dumps(document).encode())

    assert [lcm("import", str(file)).exit_code for _ in range(2)] == [0, 0]

    message = Message.objects.get(role="assistant")
    assert f"[patch {' '.join(named)}]" in message.content
    assert exported("ses_1", "journal", "--subpath", "large") == [document["messages"][1]]


def test_without_a_journal_large_metadata_is_refused_as_before(refused):
    chat = {"role": "user", "content": "x", "refusal": None, "own": "y" * MOST}

    assert refused("chat.jsonl", files.lines_of([chat]))["code"] == "metadata_too_large"
    assert not JournalEntry.objects.exists()


def lines_in(path):
    """What a file holds: JSON Lines, or the values of one document."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        if ".jsonl" in path.name:
            return [json.loads(each) for each in file]
        found = json.load(file)
        return found if isinstance(found, list) else [found]


def original_files():
    """Every session as its program wrote it; the long ones are for the thorough run."""
    for path in sorted((DATA / "originals").glob("*")):
        marks = [pytest.mark.thorough] if path.stat().st_size > 100_000 else []
        yield pytest.param(path, marks=marks, id=path.name.split(".")[0])


@needs_data
@pytest.mark.parametrize("path", list(original_files()))
def test_every_real_session_comes_back_line_by_line(path):
    report = lcm("--json", "import", str(path))
    assert report.exit_code == 0, report.err

    first = report.json["conversations"][0]["conversation_id"]
    homes = Conversation.objects.filter(journal_size__gt=0).order_by("conversation_id")
    found = [row for each in homes for row in exported(each.session_id)]

    assert homes[0].pk == first
    assert found == lines_in(path)


@pytest.mark.thorough
def test_a_file_is_found_among_more_than_a_page_of_others():
    conversation_id = a_conversation(session_id="s1").conversation_id
    journal = Journal()
    for number in range(1_005):
        journal.append_entries(conversation_id=conversation_id, entries=[{"n": number}], subpath=f"agent-{number:04}")

    assert list(journal.lines(conversation_id=conversation_id, subpath="agent-1004")) == [{"n": 1_004}]
    assert list(journal.lines(conversation_id=conversation_id)) == [{"n": 1_004}]
    journal.append_entries(conversation_id=conversation_id, entries=[{"own": 1}], subpath="#2")
    assert list(journal.lines(conversation_id=conversation_id)) == [{"own": 1}]
    with pytest.raises(NotFound):
        journal.lines(conversation_id=conversation_id, subpath="agent-1005")
    with pytest.raises(NotFound):
        journal.lines(conversation_id=conversation_id, subpath="\x00")
