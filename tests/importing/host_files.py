"""Small files as other programs write them, one of each kind."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

MOMENT = 1_769_860_800_000
ISO = "2026-01-31T12:00:00.000Z"

OPENCODE: dict[str, Any] = {
    "info": {"id": "ses_1", "directory": "/home/ada/boats", "title": "Ports", "version": "1.18.33",
             "time": {"created": MOMENT, "updated": MOMENT}},
    "messages": [
        {"info": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": MOMENT}},
         "parts": [{"id": "prt_1", "type": "text", "text": "Which port?"},
                   {"id": "prt_2", "type": "file", "mime": "text/plain", "filename": "a.py", "url": "file:///a.py"}]},
        {"info": {"id": "msg_2", "sessionID": "ses_1", "role": "assistant", "modelID": "m",
                  "time": {"created": MOMENT + 1, "completed": MOMENT + 9}},
         "parts": [
             {"id": "prt_3", "type": "step-start", "snapshot": "5f"},
             {"id": "prt_4", "type": "reasoning", "text": "Look."},
             {"id": "prt_5", "type": "tool", "tool": "read", "callID": "c1", "state": {
                 "status": "completed", "input": {"filePath": "a.py"}, "output": "PORT = 5433", "title": "a.py",
                 "metadata": {"lines": 1}, "time": {"start": MOMENT, "end": MOMENT}}},
             {"id": "prt_6", "type": "text", "text": "It is 5433."},
             {"id": "prt_7", "type": "patch", "hash": "9c", "files": ["/a.py"]},
             {"id": "prt_8", "type": "step-finish", "reason": "stop", "cost": 0.01,
              "tokens": {"input": 6, "output": 88, "reasoning": 0}},
         ]},
    ],
}  # fmt: skip
OPENCODE_CHILD: dict[str, Any] = {
    "info": {"id": "ses_2", "parentID": "ses_1", "directory": "/home/ada/boats", "title": "Look",
             "time": {"created": MOMENT + 5}},
    "messages": [{"info": {"id": "msg_3", "role": "user", "time": {"created": MOMENT + 5}},
                  "parts": [{"type": "text", "text": "Look for it."}]}],
}  # fmt: skip
GEMINI: dict[str, Any] = {
    "sessionId": "gem-1", "projectHash": "ab12", "startTime": ISO, "lastUpdated": ISO, "kind": "main",
    "directories": ["/home/ada/boats"],
    "messages": [
        {"id": "u1", "timestamp": ISO, "type": "user", "content": "Which port?"},
        {"id": "i1", "timestamp": ISO, "type": "info", "content": "A new version is there."},
        {"id": "a1", "timestamp": ISO, "type": "gemini", "content": "It is 5433.", "model": "gemini-3",
         "thoughts": [{"subject": "Port", "description": "Look in a.py.", "timestamp": ISO}],
         "tokens": {"input": 5, "output": 7, "cached": 0, "total": 12},
         "toolCalls": [{"id": "c1", "name": "read_file", "args": {"path": "a.py"}, "status": "success",
                        "result": [{"functionResponse": {"id": "c1", "name": "read_file",
                                                         "response": {"output": "PORT = 5433"}}}]}]},
    ],
}  # fmt: skip
GEMINI_LINES: list[dict[str, Any]] = [
    {"sessionId": "gem-2", "projectHash": "ab12", "startTime": ISO, "lastUpdated": ISO},
    {"id": "u1", "timestamp": ISO, "type": "user", "content": [{"text": "Which port?"}]},
    {"id": "a1", "timestamp": ISO, "type": "gemini", "content": "5432."},
    {"$set": {"summary": "Ports"}},
    {"$rewindTo": "a1"},
    {"id": "a2", "timestamp": ISO, "type": "gemini", "content": "5433."},
]


def chatgpt_node(id: str, parent: str | None, role: str, *texts: str, **more: Any) -> dict[str, Any]:
    message = {"id": id, "author": {"role": role, "name": None, "metadata": {}}, "create_time": MOMENT / 1000,
               "content": {"content_type": "text", "parts": list(texts)}, "recipient": "all"}  # fmt: skip
    return {"id": id, "message": message | more, "parent": parent, "children": []}


CHATGPT: list[dict[str, Any]] = [
    {
        "id": "gpt-1", "conversation_id": "gpt-1", "title": "Ports", "create_time": MOMENT / 1000, "current_node": "a2",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
            "s": chatgpt_node("s", "root", "system", ""),
            "u1": chatgpt_node("u1", "s", "user", "Which port?"),
            "a1": chatgpt_node("a1", "u1", "assistant", "It is 5432."),
            "u2": chatgpt_node("u2", "a1", "user", "Are you sure?"),
            "a2": chatgpt_node("a2", "u1", "assistant", "It is 5433."),
        },
    }
]  # fmt: skip
CLAUDE_AI: list[dict[str, Any]] = [
    {
        "uuid": "cai-1", "name": "Ports", "created_at": ISO, "updated_at": ISO, "account": {"uuid": "x"},
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "Which port?", "created_at": ISO, "updated_at": ISO,
             "content": [{"type": "text", "text": "Which port?", "citations": []}], "files": [],
             "attachments": [{"file_name": "a.txt", "file_type": "txt", "extracted_content": "PORT = 5433"}]},
            {"uuid": "m2", "sender": "assistant", "text": "It is 5433.", "created_at": ISO, "updated_at": ISO,
             "attachments": [], "files": [{"file_name": "p.png"}],
             "content": [
                 {"type": "thinking", "thinking": "Look."},
                 {"type": "tool_use", "id": "t1", "name": "search", "input": {"query": "port"}},
                 {"type": "tool_result", "tool_use_id": "t1", "name": "search", "is_error": False,
                  "content": [{"type": "text", "text": "a.txt"}]},
                 {"type": "text", "text": "It is 5433."}]},
        ],
    }
]  # fmt: skip


def claude_ai_message(id: str, parent: str, sender: str, text: str) -> dict[str, Any]:
    return {"uuid": id, "parent_message_uuid": parent, "sender": sender, "text": text, "created_at": ISO,
            "content": [{"type": "text", "text": text}], "attachments": [], "files": []}  # fmt: skip


# The first message has a parent that is none; the question was put again, and the first way is gone on with.
CLAUDE_AI_TREE: list[dict[str, Any]] = [
    {
        "uuid": "cai-2", "name": "Ports", "created_at": ISO, "current_leaf_message_uuid": "m3",
        "chat_messages": [
            claude_ai_message("m1", "00000000-0000-4000-8000-000000000000", "human", "Which port?"),
            claude_ai_message("m2", "m1", "assistant", "It is 5432."),
            claude_ai_message("m4", "m1", "assistant", "It is 5433."),
            claude_ai_message("m3", "m2", "human", "Are you sure?"),
        ],
    }
]  # fmt: skip
SWE_AGENT: dict[str, Any] = {
    "environment": "main", "info": {"exit_status": "submitted"},
    "trajectory": [{"action": "cat a.py\n", "observation": "PORT = 5433", "response": "Look.", "thought": "Look.",
                    "state": "{}"}],
    "history": [
        {"role": "system", "content": "You are a programmer.", "agent": "primary"},
        {"role": "user", "content": "Which port?", "agent": "primary"},
        {"role": "assistant", "content": "Look.\n```\ncat a.py\n```", "thought": "Look.", "action": "cat a.py\n",
         "agent": "primary"},
        {"role": "user", "content": "PORT = 5433", "agent": "primary"},
    ],
}  # fmt: skip
AIDER = """
# aider chat started at 2026-01-31 12:00:00

> Aider v0.86.0  
> Git repo: .git with 3 files  

#### Which port?  
#### I mean the database.  

It is 5433:

```python
PORT = 5433
```

> Tokens: 2k sent, 100 received.  
"""  # noqa: W291
CLAUDE_CODE = [
    {"parentUuid": None, "isSidechain": False, "sessionId": "cc-1", "cwd": "/home/ada/boats", "type": "user",
     "message": {"role": "user", "content": "Which port?"}, "uuid": "u1", "timestamp": ISO},
    {"parentUuid": "u1", "isSidechain": False, "sessionId": "cc-1", "cwd": "/home/ada/boats", "type": "assistant",
     "message": {"role": "assistant", "content": [{"type": "text", "text": "5433."}]}, "uuid": "u2", "timestamp": ISO},
]  # fmt: skip


def claude_code_line(id: str, parent: str | None, content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    line = {"parentUuid": parent, "isSidechain": False, "sessionId": "cc-2", "type": role, "uuid": id, "timestamp": ISO}
    return line | ({} if content is None else {"message": {"role": role, "content": content}}) | more


# Two calls at once, each followed by its result, and a compaction; after `/rewind` another prompt in place of the last.
CLAUDE_CODE_REWOUND = [
    claude_code_line("h1", None, None, "progress"),
    claude_code_line("u1", "h1", "Which port?"),
    claude_code_line("a1", "u1", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}], "assistant"),
    claude_code_line("a2", "a1", [{"type": "tool_use", "id": "t2", "name": "Read", "input": {}}], "assistant"),
    claude_code_line("r1", "a1", [{"type": "tool_result", "tool_use_id": "t1", "content": "PORT = 5433"}]),
    claude_code_line("r2", "a2", [{"type": "tool_result", "tool_use_id": "t2", "content": "PORT = 5434"}]),
    # What was written meanwhile follows the first of them.
    claude_code_line("u2", "r1", "In a.py."),
    claude_code_line("a3", "u2", [{"type": "text", "text": "It is 5433."}], "assistant"),
    claude_code_line("b1", None, None, "system", subtype="compact_boundary", logicalParentUuid="a3"),
    claude_code_line("c1", "b1", "The port is 5433.", isCompactSummary=True),
    claude_code_line("s1", "c1", None, "system"),
    claude_code_line("u3", "s1", "Change it."),
    claude_code_line("a4", "u3", [{"type": "text", "text": "It is 1."}], "assistant"),
    claude_code_line("u4", "s1", "Leave it."),
    claude_code_line("a5", "u4", [{"type": "text", "text": "It stays."}], "assistant"),
]
# After `/rewind` to the first prompt, which nothing precedes, and another one after that.
CLAUDE_CODE_BEGUN_ANEW = [
    claude_code_line("u1", None, "Which port?"),
    claude_code_line("a1", "u1", [{"type": "text", "text": "It is 5433."}], "assistant"),
    claude_code_line("u2", None, "Which host?"),
    claude_code_line("a2", "u2", [{"type": "text", "text": "It is db."}], "assistant"),
    claude_code_line("u3", "a2", "And the port?"),
    claude_code_line("a3", "u3", [{"type": "text", "text": "It is 5434."}], "assistant"),
]
# Lines that nothing precedes, and that are no branches: of tasks of sub-agents without a name, of a compaction, of a
# session that goes on as another one.
CLAUDE_CODE_BEGINNINGS = [
    claude_code_line("u1", None, "Which port?"),
    claude_code_line("s1", None, "Look in a.py.", isSidechain=True),
    claude_code_line("s2", "s1", [{"type": "text", "text": "PORT = 5433"}], "assistant", isSidechain=True),
    claude_code_line("s3", None, "Look in b.py.", isSidechain=True),
    claude_code_line("a1", "u1", [{"type": "text", "text": "It is 5433."}], "assistant"),
    claude_code_line("c1", None, "This session is being continued from a previous conversation. The port is 5433."),
    claude_code_line("b1", None, None, "system", subtype="compact_boundary", logicalParentUuid="c1"),
    claude_code_line("c2", None, "It was 5433.", isCompactSummary=True),
    claude_code_line("m1", None, "The caveat of a command.", isMeta=True),
    claude_code_line("u2", "m1", "Change it."),
    claude_code_line("v1", None, "Which port?", sessionId="cc-3"),
]
CLAUDE_CODE_AGENT = [
    {"parentUuid": None, "isSidechain": True, "agentId": "a1", "sessionId": "cc-1", "cwd": "/home/ada/boats",
     "type": "user", "message": {"role": "user", "content": "Look for it."}, "uuid": "u3", "timestamp": ISO},
]  # fmt: skip
CODEX = [
    {"timestamp": ISO, "type": "session_meta", "payload": {"id": "codex-1", "cwd": "/home/ada/boats"}},
    {"timestamp": ISO, "type": "response_item", "payload": {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which port?"}]}},
    {"timestamp": ISO, "type": "compacted", "payload": {"message": "", "window_number": 1, "replacement_history": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which port?"}]}]}},
]  # fmt: skip


def pi_line(id: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": MOMENT}
    return {"type": "message", "id": id, "parentId": parent, "timestamp": ISO, "message": message}


# The question is answered twice, with lines between that hold no message.
PI = [
    {"type": "session", "version": 3, "id": "pi-1", "timestamp": ISO, "cwd": "/home/ada/boats"},
    {
        "type": "message",
        "id": "p",
        "parentId": None,
        "timestamp": ISO,
        "message": {"role": "system", "content": "", "sections": {"preamble": "You are pi."}, "timestamp": MOMENT},
    },
    pi_line("a", "p", "user", "Which port?"),
    pi_line("b", "a", "assistant", "It is 5432."),
    {"type": "usage", "id": "c", "parentId": "b", "timestamp": ISO, "usage": {"input": 1}},
    {"type": "context_edit", "id": "d", "parentId": "a", "timestamp": ISO, "edits": []},
    pi_line("e", "d", "assistant", "It is 5433."),
]


def lines_of(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


# By the program that writes it: the file's name, and its bytes.
FILES: dict[str, tuple[str, bytes]] = {
    "OpenCode": ("ses_1.json", json.dumps(OPENCODE, indent=2).encode()),
    "Gemini CLI": ("session-1.json", json.dumps(GEMINI, indent=2).encode()),
    "Gemini CLI, lines": ("session-2.jsonl", lines_of(GEMINI_LINES)),
    "ChatGPT": ("conversations.json", json.dumps(CHATGPT).encode()),
    "Claude.ai": ("conversations.json", json.dumps(CLAUDE_AI).encode()),
    "Claude.ai, branches": ("conversations.json", json.dumps(CLAUDE_AI_TREE).encode()),
    "SWE-agent": ("boats.traj", json.dumps(SWE_AGENT, indent=2).encode()),
    "aider": (".aider.chat.history.md", AIDER.encode()),
    "Claude Code": ("cc-1.jsonl", lines_of(CLAUDE_CODE)),
    "Claude Code, rewound": ("cc-2.jsonl", lines_of(CLAUDE_CODE_REWOUND)),
    "Claude Code, begun anew": ("cc-2.jsonl", lines_of(CLAUDE_CODE_BEGUN_ANEW)),
    "Codex": ("rollout-1.jsonl", lines_of(CODEX)),
    "pi": ("pi-1.jsonl", lines_of(PI)),
}


def put(home: Path, name: str, content: bytes) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def opencode_database(path: Path, *sessions: dict[str, Any]) -> sqlite3.Connection:
    """A database as OpenCode's, open, with all rows in its write-ahead log still."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA wal_autocheckpoint = 0")
    with closing(database.cursor()) as cursor:
        cursor.execute("CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, time_created INT)")
        cursor.execute("CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, data TEXT)")
        cursor.execute("CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)")
    for session in sessions:
        add_opencode_session(database, session)
    return database


def add_opencode_session(database: sqlite3.Connection, session: dict[str, Any]) -> None:
    info = session["info"]
    values = (info["id"], info.get("parentID"), info["directory"], info["title"], info["time"]["created"])
    database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?)", values)
    for message in session["messages"]:
        data = dict(message["info"])
        id, created = data.pop("id"), data["time"]["created"]
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (id, info["id"], created, json.dumps(data)))
        for place, part in enumerate(message["parts"]):
            own = {key: value for key, value in part.items() if key != "id"}
            row = (part.get("id", f"prt_{id}_{place}"), id, info["id"], json.dumps(own))
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
    database.commit()
