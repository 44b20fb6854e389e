"""What the gateway looked up is put back where the model has looked it up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window.request_entries import parse_entries
from lcmsite.gateway.window.types import WindowRequest
from lcmsite.gateway.window.unfolding import unfold_lookups
from tests.lcmsite.gateway.window.memory import COUNTER

QUESTION = {"role": "user", "content": "Go on."}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
CALL = {"type": "function_call", "call_id": "1", "name": "lcm_grep", "arguments": "{}"}
FOUND = {"type": "function_call_output", "call_id": "1", "output": "found"}


def a_message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def with_lookups(entries: list[Any], seqs: list[int | None], *, at: int) -> list[Any]:
    """The entries with a lookup before the answer at this seq, of which the agent got two."""
    body = json.dumps({"input": entries}).encode()
    request = parse_entries(Surface.RESPONSES, body, counter=COUNTER, seqs=seqs)
    assert isinstance(request, WindowRequest)
    known = {at: {"visible": 2, "rows": [CALL, FOUND, THOUGHT, a_message("Second.")], "results": []}}
    return [entry.value for entry in unfold_lookups(request, known, counter=COUNTER).entries]


# The agent has changed the thought of the second case: it is stored as it was, and so not found.
@pytest.mark.parametrize("seqs", [[4, 5, 6, 7, 8], [4, 5, None, 7, 8]])
def test_lookups_are_put_back_before_the_answer_that_they_were_made_for(seqs: list[int | None]) -> None:
    before = [QUESTION, a_message("First.")]

    entries = with_lookups([*before, THOUGHT, a_message("Second."), QUESTION], seqs, at=7)

    assert entries == [*before, CALL, FOUND, THOUGHT, a_message("Second."), QUESTION]


@pytest.mark.parametrize(("before", "seqs"), [([QUESTION, a_message("First.")], [4, 5, 7, 8]), ([], [2, 3])])
def test_an_answer_that_the_agent_has_not_whole_stays_and_all_before_it(before: list[Any], seqs: list[int]) -> None:
    given = [*before, a_message("Second."), QUESTION]

    assert with_lookups(given, list(seqs), at=seqs[-2]) == given
