"""Memory across conversations from outside: what a host's transcript names, and session summaries by a worker."""

from __future__ import annotations

import json

import pytest

from compaction.history.models import SessionSummary
from tests.histories import a_session, work_off
from tests.lcmsite.callers import Api, an_api_key, lcm

pytestmark = pytest.mark.django_db

DIRECTORY = "/home/ada/boats"


def of_claude_code(number: int, role: str, text: str, **own: object) -> dict[str, object]:
    return {
        "type": role,
        "sessionId": "main",
        "isSidechain": False,
        "cwd": DIRECTORY,
        "gitBranch": "main",
        "uuid": f"u{number}",
        "timestamp": f"2026-03-01T10:{number:02}:00.000Z",
        "message": {"role": role, "content": text},
        **own,
    }


# A session that sends two sub-agents out, of which one has no name.
CLAUDE_CODE = [
    {"type": "summary", "summary": "Ports", "leafUuid": "u9"},
    of_claude_code(1, "user", "Which port has the harbour's database?"),
    of_claude_code(2, "assistant", "I have it looked up."),
    of_claude_code(3, "user", "Look for the port in docs.", isSidechain=True, agentId="a28"),
    of_claude_code(4, "assistant", "docs/ports.md says 5433.", isSidechain=True, agentId="a28"),
    of_claude_code(5, "user", "Look for it in the settings.", isSidechain=True),
    of_claude_code(6, "assistant", "It is 5433."),
]


@pytest.fixture
def transcript(tmp_path):
    def imported(lines):
        path = tmp_path / "transcript.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        answer = lcm("--json", "import", str(path))
        assert answer.exit_code == 0, answer.err
        return answer.json

    return imported


def entry_of(found, session_id):
    [entry] = [each for each in found if each["session_id"] == session_id]
    return entry


def test_a_transcript_with_sub_agents_is_a_time_line_with_children(transcript):
    imported, again = transcript(CLAUDE_CODE), transcript(CLAUDE_CODE)
    sessions = {each["session_id"]: each["conversation_id"] for each in imported["conversations"]}
    # Imported again, nothing becomes another's child.
    assert {each["session_id"]: each["created"] for each in again["conversations"]} == dict.fromkeys(sessions, 0)
    assert imported["passed_over"] == again["passed_over"] == {"summary": 1}

    on_the_line = lcm("--json", "timeline", "--project", DIRECTORY).json["items"]
    over_rest = Api(an_api_key()).get("session-summaries/", project=DIRECTORY).body["items"]

    assert on_the_line == over_rest
    assert set(sessions) == {"main", "main:a28", "main:sidechain"} == {each["session_id"] for each in over_rest}
    for name, count, link in (("main", 3, None), ("main:a28", 2, "subagent"), ("main:sidechain", 1, "subagent")):
        entry = entry_of(over_rest, name)
        parent_id = sessions["main"] if link else None
        assert (entry["project"], entry["message_count"]) == (DIRECTORY, count) and "content" not in entry
        assert entry["conversation_id"] == sessions[name]
        assert (entry.get("parent_id"), entry.get("parent_link")) == (parent_id, link)
    shown = lcm("timeline", "--project", DIRECTORY).out
    assert shown.count(f"subagent of conversation {sessions['main']}") == 2


def test_the_summaries_of_an_imported_session_and_its_agents_are_in_its_time_line(transcript):
    for each in transcript(CLAUDE_CODE)["conversations"]:
        made = lcm("summarize-session", str(each["conversation_id"]))
        assert made.exit_code == 0, made.err

    found = Api(an_api_key()).get("session-summaries/", project=DIRECTORY, kind="session").body["items"]

    assert "5433" in entry_of(found, "main:a28")["content"]
    assert [each["behind"] for each in found] == [0, 0, 0]
    # Sub-agents are no earlier sessions of their project.
    ago = lcm("--json", "session-ago", str(entry_of(found, "main:a28")["conversation_id"]))
    assert ago.exit_code != 0 or ago.json["session"]["session_id"] == "main"


def test_a_session_summary_that_was_left_to_a_worker_is_read_when_it_is_there():
    api, conversation = Api(an_api_key()), a_session(1)
    path = f"conversations/{conversation.conversation_id}/session-summary/"

    asked = api.post(path, {"background": True})
    again = api.post(path, {"background": True})

    assert (asked.status, again.status) == (202, 202)
    job = asked.body
    assert (job["job_id"], job["state"], job["reason"]) == (again.body["job_id"], "queued", "manual")
    assert api.get(f"history-jobs/{job['job_id']}/").body == job
    assert not SessionSummary.objects.exists()

    work_off()

    done = api.get(f"history-jobs/{job['job_id']}/").body
    assert (done["state"], done["attempts"], done["last_error"]) == ("done", 1, "")
    [entry] = api.get("session-summaries/", conversation_id=conversation.conversation_id).body["items"]
    assert (entry["kind"], entry["message_count"], entry["behind"]) == ("session", 6, 0)
    assert "5433" in entry["content"]
    below = api.get(f"session-summaries/{entry['id']}/expansion/", include_messages=True).body
    assert len([each for each in below["items"] if each["kind"] == "message"]) == 6
    # Nothing is new since, so that nothing is made.
    unchanged = api.post(path, {})
    assert (unchanged.body["created"], unchanged.body["summary"]["summary_id"]) == (False, entry["id"])
