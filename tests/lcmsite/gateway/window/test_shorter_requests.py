"""What a request over its window becomes, and which go through as they came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window.types import Assembled, Untouched
from tests.clients.wire_and_store import strings_in
from tests.lcmsite.gateway.window.checking import check_request, entries_of
from tests.lcmsite.gateway.window.memory import MARK, Kept, assembled, assembler_of, read
from tests.lcmsite.gateway.window.wire import Step, Wire

surfaces = pytest.mark.parametrize("surface", list(Surface))


def a_long_wire(surface: Surface = Surface.MESSAGES, *, turns: int = 30, words: int = 100, thought: str = "") -> Wire:
    wire = Wire(surface)
    for number in range(turns):
        wire.ask(f"Question {number}")
        ids = wire.answer(Step("Reading.", thought, ("x",)))
        wire.return_results(ids, [f"result {number} " * words])
        wire.answer(Step(f"Answer {number}"))
    wire.ask("The last question")
    return wire


def sent(wire: Wire, result: Assembled) -> list[dict[str, Any]]:
    assert result.shorter is not None
    check_request(wire.surface, result.shorter.body)
    return entries_of(wire.surface, result.shorter.body)


@pytest.mark.parametrize(
    ("surface", "more", "why"),
    [
        (Surface.RESPONSES, {"previous_response_id": "resp_1"}, Untouched.DELTA),
        (Surface.RESPONSES, {"conversation": "conv_1"}, Untouched.DELTA),
        (Surface.MESSAGES, {"thread": {"type": "continue", "previous_message_id": "msg_1"}}, Untouched.DELTA),
        (Surface.MESSAGES, {"context_management": {"edits": [{"type": "compact_20260112"}]}}, "vendor_compaction"),
        (Surface.MESSAGES, {"compaction": {"type": "summarize"}}, Untouched.VENDOR_COMPACTION),
        (Surface.RESPONSES, {"context_management": [{"type": "compaction"}]}, Untouched.VENDOR_COMPACTION),
    ],
)
def test_deltas_and_compactions_of_the_vendor_are_left_alone(
    surface: Surface, more: dict[str, Any], why: Untouched
) -> None:
    result = assembled(a_long_wire(surface), Kept(), window=3_000, **more)

    assert result.untouched == why


def test_clearing_old_results_is_no_compaction() -> None:
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}

    result = assembled(a_long_wire(), Kept(), window=3_000, context_management=edits)

    assert result.shorter is not None


def test_history_that_the_vendor_has_compacted_is_left_alone() -> None:
    wire = a_long_wire(Surface.RESPONSES)
    wire.entries.insert(0, {"type": "compaction", "encrypted_content": "gAAA"})

    assert assembled(wire, Kept(), window=3_000).untouched is Untouched.VENDOR_COMPACTION


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"messages": 7}', b'{"messages": [], "messages": []}', b"\xff", b"[" * 9_999]
)
def test_what_cannot_be_read_goes_through(body: bytes) -> None:
    result = assembler_of(Kept(), window=3_000).assemble(surface=Surface.CHAT, body=body, seqs=())

    assert result.untouched is Untouched.UNREADABLE


def test_what_is_not_stored_is_not_left_out() -> None:
    wire = a_long_wire()

    result = assembler_of(Kept(), window=3_000).assemble(surface=wire.surface, body=wire.body(), seqs=[1, 2, 3])

    assert result.untouched is Untouched.NOT_STORED


@surfaces
def test_the_opening_stays_and_summaries_stand_behind_it(surface: Surface) -> None:
    wire = a_long_wire(surface)

    entries = sent(wire, assembled(wire, Kept(), window=3_000))

    place = 1 if surface is Surface.CHAT else 0
    assert "Question 0" in json.dumps(entries[place])
    block = json.dumps(entries[place + 1])
    assert MARK in block
    assert "sum_1" in block and "lcm_expand" in block and "lcm_grep" in block
    assert "The last question" in json.dumps(entries[-1])


def test_an_opening_that_is_too_large_is_left_out_as_any_other() -> None:
    wire = Wire(Surface.MESSAGES)
    wire.ask("manual " * 1_000)
    wire.answer(Step("Fine."))
    wire.entries += a_long_wire().entries

    entries = sent(wire, assembled(wire, Kept(), window=3_000))

    assert MARK in json.dumps(entries[0])


@surfaces
def test_many_reminders_leave_room_for_the_rest_and_the_newest_are_kept(surface: Surface) -> None:
    wire, memory = Wire(surface), Kept()
    wire.ask("Question 0")
    wire.instruct("Reminder first: use tabs.")
    wire.answer(Step("Answer 0"))
    for number in range(200):
        wire.ask(f"Question {number} " * 10)
        wire.instruct(f"Reminder {number:03}: the file changed, read it again.")
        wire.answer(Step(f"Answer {number}"))
    wire.ask("The last question")

    result = assembled(wire, memory, window=3_000)

    text = json.dumps(sent(wire, result))
    kept = [f"Reminder {number:03}" in text for number in range(200)]
    assert not result.is_over
    assert "Reminder first" in text and "Answer 199" in text
    assert kept == sorted(kept) and 10 < kept.count(True) < 100
    assert f"{kept.count(False)} are older system messages" in text
    # The cut is reused, and those that are left out are not counted as waiting for a summary.
    assert not assembled(wire, memory, window=3_000).is_new_cut


@surfaces
def test_a_large_instruction_of_the_current_question_is_kept_beside_earlier_ones(surface: Surface) -> None:
    wire = Wire(surface)
    for number in range(40):
        wire.ask(f"Question {number} " * 20)
        wire.instruct(f"Reminder {number:02}.")
        wire.answer(Step(f"Answer {number}"))
        if number == 20:
            wire.ask("Now a manual.")
            wire.instruct("manual " * 1_500)
            wire.answer(Step("Read."))
    wire.ask("The last question")
    wire.instruct("Instructions of the last question. " * 200)
    for number in range(60):
        wire.return_results(wire.answer(Step("", results=("x",))), [f"result {number} " * 30])

    result = assembled(wire, Kept(), window=6_000)

    text = json.dumps(sent(wire, result))
    assert not result.is_over
    assert "The last question" in text and text.count("Instructions of the last question.") == 200
    assert all(f"Reminder {number:02}." in text for number in range(40))
    assert "manual manual" not in text and "1 are older system messages" in text


@surfaces
def test_a_result_over_the_window_is_shortened_and_says_where_it_is(surface: Surface) -> None:
    wire = Wire(surface)
    wire.ask("Read it.")
    wire.return_results(wire.answer(Step("", results=("x", "y"))), [f"begin {'x y ' * 50_000} end", "small"])

    result = assembled(wire, Kept(), window=3_000)

    text = json.dumps(sent(wire, result))
    assert result.shorter is not None and result.shorter.results_shortened
    assert not result.is_over
    assert "begin x y" in text and "x y  end" in text and "small" in text
    assert "lcm_expand_range" in text and MARK in text


def test_results_behind_a_cut_come_whole_while_there_is_room() -> None:
    wire, memory = Wire(Surface.MESSAGES), Kept()
    wire.ask("Read them.")
    wire.return_results(wire.answer(Step("", results=("x",) * 20)), ["x y " * 2_000] * 20)
    assembled(wire, memory, window=16_000)
    wire.return_results(wire.answer(Step("Next.", results=("x",))), ["found " * 600])

    result = assembled(wire, memory, window=16_000)

    assert "found " * 600 in json.dumps(sent(wire, result)[-1])
    assert not result.is_new_cut


def test_over_the_window_a_result_is_still_long_enough_to_be_read() -> None:
    wire = Wire(Surface.MESSAGES)
    wire.ask("Read it.")
    wire.return_results(wire.answer(Step("", results=("x",))), ["found " * 2_000])
    tool = {"name": "own", "description": "own " * 20_000, "input_schema": {"type": "object"}}

    result = assembled(wire, Kept(), window=16_000, tools=[tool])

    assert result.is_over
    assert json.dumps(sent(wire, result)[-1]).count("found") > 300


def test_what_cannot_fit_is_made_as_short_as_it_can_be_and_reported() -> None:
    wire = a_long_wire()
    wire.ask("word " * 10_000)

    result = assembled(wire, Kept(), window=3_000)

    assert result.is_over
    assert result.tokens_out < result.tokens_in


def test_without_summaries_the_range_is_named_and_they_come_once_there_are_some() -> None:
    wire, memory = a_long_wire(), Kept(is_quick=False)

    first = json.dumps(sent(wire, assembled(wire, memory, window=3_000)))
    assert "No summary yet of seq 2 to" in first
    assert "lcm_expand_range" in first

    memory.summarize()
    second = assembled(wire, memory, window=3_000)
    third = assembled(wire, memory, window=3_000)

    assert second.is_new_cut and not third.is_new_cut
    assert 'id=\\"sum_' in json.dumps(sent(wire, second))
    assert third.shorter == second.shorter


def test_a_trial_keeps_nothing_and_compacts_nothing() -> None:
    memory = Kept()

    result = assembled(a_long_wire(), memory, window=3_000, is_trial=True)

    assert result.shorter is not None
    assert memory.cuts == [] and memory.found == []


def test_an_edit_before_the_cut_makes_another_cut() -> None:
    wire, memory = a_long_wire(), Kept()
    assembled(wire, memory, window=3_000)

    seqs = [1, *range(500, 500 + len(wire.entries) - 1)]
    result = assembler_of(memory, window=3_000).assemble(surface=wire.surface, body=wire.body(), seqs=seqs)

    assert result.is_new_cut


def test_thoughts_before_the_cut_go_and_those_behind_it_stay() -> None:
    wire, memory = a_long_wire(thought="before"), Kept()
    assert "before" not in json.dumps(sent(wire, assembled(wire, memory, window=3_000)))

    wire.answer(Step("Yes.", "behind"))
    wire.ask("And then?")
    result = assembled(wire, memory, window=3_000)

    text = json.dumps(sent(wire, result))
    assert not result.is_new_cut
    assert "behind" in text and "before" not in text


def test_models_that_demand_their_thoughts_get_them_all() -> None:
    wire = a_long_wire(thought="before")

    result = assembled(wire, Kept(), window=3_000, thinking={"type": "enabled", "budget_tokens": 1024})

    assert '"thinking": "before"' in json.dumps(sent(wire, result))


@pytest.mark.parametrize(("own", "expected"), [(0, 3), (1, 4), (2, 4)])
def test_there_are_at_most_four_breakpoints(own: int, expected: int) -> None:
    wire = a_long_wire()
    for entry in [each for each in wire.entries if each["role"] == "user"][-1 - own : -1]:
        entry["content"][0]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}

    result = assembled(wire, Kept(), window=3_000)

    assert result.shorter is not None
    assert result.shorter.body.count(b'"cache_control"') == expected
    block = next(each for each in sent(wire, result) if MARK in json.dumps(each))
    assert block["content"][0].get("cache_control", {}).get("ttl") == (None if own != 1 else "1h")


@surfaces
@pytest.mark.parametrize("window", [100_000, 5_000])
def test_the_tokens_of_a_request_are_counted_as_it_came(surface: Surface, window: int) -> None:
    wire, memory = a_long_wire(surface), Kept()
    *_, last = wire.entries
    wire.entries.remove(last)
    answer = wire.entries[-1]
    row = {"role": "assistant", "content": "looked up " * 100}
    memory.lookups = {len(wire.entries): {"visible": 1, "rows": [row, answer], "results": []}}
    wire.entries.append(last)

    without = assembled(wire, Kept(), window=window)
    result = assembled(wire, memory, window=window, has_lookups=True)

    assert result.tokens_in == without.tokens_in == read(wire, wire.body()).tokens
    assert (result.shorter is None) or "looked up" in result.shorter.body.decode()


@surfaces
def test_a_lookup_that_is_shortened_points_to_no_message(surface: Surface) -> None:
    wire = Wire(surface)
    wire.ask("Find it, and read it.")
    [call] = wire.answer(Step("", results=("x",)))
    wire.return_results([call], ["own " * 20_000])
    question, answer, result = wire.entries
    looking = Wire(surface, calls=1)
    looking.return_results(looking.answer(Step("", results=("x",))), ["found " * 20_000])
    looked, found = looking.entries
    rows = [looked, found, answer]
    last: list[dict[str, Any]] = []
    if surface is Surface.MESSAGES:
        # Beside the call of the agent's own: the results of both are one message.
        rows, last = [{**answer, "content": [*looked["content"], *answer["content"]]}], [found]
    memory = Kept(lookups={2: {"visible": 1, "rows": rows, "results": last}})

    _, *shorter = sent(wire, assembled(wire, memory, window=8_000, has_lookups=True))

    [own] = [text for text in strings_in(shorter) if "own own" in text]
    [other] = [text for text in strings_in(shorter) if "found found" in text]
    assert "LCM left out" in own and "lcm_expand_range" in own
    assert "LCM left out" in other and "Call the tool again" in other and "lcm_expand_range" not in other
