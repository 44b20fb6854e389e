"""README names the tools of other memories: ours take the params and answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lcmsite.mcp.tool_list import TOOLS
from tests.lcmsite.agents import question

README = Path(__file__).resolve().parents[2] / "README.md"
# What else the params of the table are given; the harbour says the rest.
MORE = {"limit": 5, "token_cap": 500, "only_messages": True, "keep_ends": True, "include_messages": True}


def equivalents() -> list[tuple[str, str, list[str]]]:
    """Their tool, ours, and the params that the table names with it."""
    table = README.read_text("utf-8").partition("| there | here |")[2].partition("\n\n")[0]
    return [
        (there.strip("`| ").partition("`")[0], tool, re.findall(r"`(\w+)`", params))
        for there, here in re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.M)
        for tool, params in re.findall(r"`(lcm_\w+)`( \([^)]*\))?", here)
    ]


def test_every_tool_of_other_memories_has_a_line():
    assert {there for there, _, _ in equivalents()} == {
        "engram_context_search", "engram_context_describe", "engram_context_expand",
        "aos_lcm_grep", "aos_lcm_describe", "aos_lcm_expand_query",
        "decapod lcm schema", "decapod lcm ingest", "decapod lcm summarize", "decapod map llm",
        "decapod map agentic --retain",
    }  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("there", "tool", "params"), equivalents())
def test_the_equivalent_takes_its_params_and_answers(harbour, http, key, there, tool, params):
    values = {**harbour, "ids": [harbour["summary_id"]], **MORE}
    known = TOOLS[tool].params.model_fields

    answer = http.call(key, tool, question(TOOLS[tool], values) | {name: values[name] for name in params})

    assert set(params) <= set(known), f"{there} is {tool}"
    assert not answer.is_error
    # Of what the table names no params of, some answers are about something else.
    assert not params or "harbour" in json.dumps(answer.structured_content)
