"""Whatever the history, requests fit the window and keep what they need."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window.types import Assembled, Untouched, WindowRequest
from lcmsite.gateway.window.window_assembler import limit_of
from tests.lcmsite.gateway.window.checking import check_request, entries_of
from tests.lcmsite.gateway.window.memory import MARK, Kept, assembled, assembler_of, read
from tests.lcmsite.gateway.window.wire import AgentTurn, histories, requests_of

WINDOW = 3_000


surfaces = pytest.mark.parametrize("surface", list(Surface))


@pytest.mark.sampled(1)
@surfaces
@given(turns=histories)
def test_every_request_fits_is_valid_and_keeps_the_turn(surface: Surface, turns: list[AgentTurn]) -> None:
    memory = Kept()
    for wire in requests_of(surface, turns):
        result = assembled(wire, memory, window=WINDOW)
        if result.shorter is None:
            assert result.untouched is Untouched.FITS
            continue

        shorter = read(wire, result.shorter.body)
        assert shorter.tokens == result.tokens_out <= limit_of(WINDOW, shorter.answer_tokens)
        assert not result.is_over
        check_request(surface, result.shorter.body)
        _check_turn_under_way(entries_of(surface, result.shorter.body), entries_of(surface, wire.body()), result)
        _check_rest(shorter, read(wire, wire.body()), result)
        twice = assembler_of(Kept(), window=WINDOW).assemble(surface=surface, body=result.shorter.body, seqs=())
        assert twice.untouched is Untouched.FITS


@pytest.mark.sampled(1)
@surfaces
@given(turns=histories)
def test_the_prefix_stays_the_same_from_cut_to_cut_and_after_a_restart(
    surface: Surface, turns: list[AgentTurn]
) -> None:
    memory = Kept()
    before: list[str] = []
    requests = cuts = 0
    for wire in requests_of(surface, turns, caches=False):
        result = assembled(wire, memory, window=WINDOW)
        if result.shorter is None:
            continue
        texts = [entry.text for entry in read(wire, result.shorter.body).entries]

        if not result.is_new_cut:
            assert texts[: len(before)] == before
        again = assembled(wire, replace(memory, cuts=list(memory.cuts)), window=WINDOW)
        assert again.shorter is not None
        assert again.shorter.body == result.shorter.body
        assert not again.is_new_cut
        before = texts
        requests, cuts = requests + 1, cuts + result.is_new_cut
    assert not requests or cuts <= 2 + requests // 2


def _check_turn_under_way(sent: list[dict], full: list[dict], result: Assembled) -> None:
    """The question is there, and all from the newest answer on, as the agent sent it."""
    questions = [each for each in full if _is_question(each)]
    assert questions[-1] in sent
    _check_instructions(sent, full)
    if result.shorter is not None and not result.shorter.results_shortened:
        newest = next(place for place in range(len(full), 0, -1) if not _is_result(full[place - 1]))
        assert sent[len(sent) - len(full[newest:]) :] == full[newest:]


def _check_instructions(sent: list[dict], full: list[dict]) -> None:
    """If instructions are left out, they are those between the first and the newest, and the block says so."""
    before, after = _instructions(full), _instructions(sent)
    assert any(before.startswith(after[:end]) and before.endswith(after[end:]) for end in range(len(after) + 1))
    assert (before != after) == ("older system messages" in json.dumps(sent))


def _check_rest(shorter: WindowRequest, request: WindowRequest, result: Assembled) -> None:
    """All but the entries is the same text, and one block replaces the rest."""
    assert shorter.body[: shorter.start] == request.body[: request.start]
    assert shorter.body[shorter.end :] == request.body[request.end :]
    own = {entry.text for entry in request.entries}
    others = [json.loads(entry.text) for entry in shorter.entries if entry.text not in own]
    blocks = [each for each in others if MARK in json.dumps(each) and not _is_result(each)]
    assert result.shorter is not None
    assert len(blocks) == bool(result.shorter.left_out)


def _instructions(entries: list[dict]) -> str:
    contents = [each["content"] for each in entries if each.get("role") in ("system", "developer")]
    return "".join(text if isinstance(text, str) else "".join(block["text"] for block in text) for text in contents)


def _is_question(entry: dict) -> bool:
    return entry.get("role") == "user" and not _is_result(entry)


def _is_result(entry: dict) -> bool:
    content = entry.get("content")
    blocks = content if isinstance(content, list) else []
    return (
        entry.get("role") == "tool"
        or entry.get("type") == "function_call_output"
        or any(block.get("type") == "tool_result" for block in blocks)
    )
