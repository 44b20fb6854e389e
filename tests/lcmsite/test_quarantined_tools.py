"""An agent's tools give nothing of what is quarantined, and say that something is withheld."""

from __future__ import annotations

import json

import anyio
from mcp import Client

from lcmsite.access.keys import Caller
from lcmsite.mcp.calls import CallRunner
from lcmsite.mcp.mcp_server import build_server
from lcmsite.types import KeyScope
from tests.lcmsite.withheld import assert_no_secret_in, readings, withheld_things


def test_no_tool_of_an_agent_gives_the_words_and_what_it_withholds_is_marked(committed_db):
    held = withheld_things()
    caller = Caller(scope=held.scope, key_scopes=frozenset({KeyScope.READ, KeyScope.WRITE}))
    answers = {}

    async def ask() -> None:
        async with Client(build_server(caller_of=lambda context: caller, runner=CallRunner())) as agent:
            for operation, given in readings(held):
                if operation.agent_tool:
                    answer = await agent.call_tool(operation.agent_tool, given)
                    text = "".join(each.text for each in answer.content) + json.dumps(answer.structured_content)
                    assert_no_secret_in(text, {operation.tool: given})
                    answers[operation.tool, json.dumps(given)] = answer

    anyio.run(ask)

    for (tool, given), answer in answers.items():
        if tool in ("lcm_message", "lcm_grep", "lcm_about", "lcm_describe", "lcm_expand", "lcm_expand_range"):
            assert "quarantined" in answer.content[0].text, (tool, given)
