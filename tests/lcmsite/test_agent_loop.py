"""The agent of docs/agents.md, run as it stands: LCM and a vendor's model both answer over HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from conversations.models import Message
from lcmsite.ops.documents import PROJECT
from tests.compaction.vendor import Asked, Vendor
from tests.lcmsite.callers import an_api_key
from tests.served import served

PAGE = (PROJECT / "docs" / "agents.md").read_text()


def says(name: str, **message: object) -> object:
    def behaviour(asked: Asked) -> None:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        whole = {"id": name, "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        asked.send(200, json.dumps(whole).encode())

    return behaviour


def looks_up(name: str, query: str) -> object:
    call = {"name": "lcm_grep", "arguments": json.dumps({"query": query})}
    return says(name, content=None, tool_calls=[{"id": "call_1", "type": "function", "function": call}])


@pytest.mark.usefixtures("committed_db")
def test_the_agent_remembers_looks_up_and_answers():
    [program] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)
    key = an_api_key()
    answers = says("a", content="Noted."), looks_up("b", "staging port"), says("c", content="On 5433.")

    with served() as url, Vendor(*answers) as vendor:
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "API": f"{url}/api/v1",
                "KEY": key,
                "OPENAI_API_KEY": "none",
                "OPENAI_BASE_URL": vendor.url,
                "NO_PROXY": "127.0.0.1",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert (ran.returncode, ran.stdout) == (0, "Noted.\nOn 5433.\n"), ran.stderr
    assert [message.role for message in Message.objects.order_by("seq")] == [
        "user", "assistant", "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
    # What it had looked up came before the model's eyes.
    assert "Staging listens on port 5433." in vendor.requests[-1].body["messages"][-1]["content"]
