"""A session of forty turns for any real agent program, and the model that answers it.

    model = ScriptedModel(forty_turns(hands))
    with Vendor(model) as vendor:
        for turn in model.turns: ...   # the driver of the program says turn.prompt, and acts as turn.act says

Each prompt has a mark, `[turn 7]`. By it the model finds what it is asked in any request, and by the ids of its own
calls how far it has come: so it answers alike after retries, restarts, rewinds, and where a history was shortened.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tests.clients.answers import Answer, Refusal, ToolCall
from tests.clients.vendor import Request

FACT = "retry_ceiling = 4711  # agreed with heron"
# What a program must let through of one result of a tool.
LONG_BYTES = 200_000
_MARK = re.compile(r"\[turn ([a-z0-9-]+)\]")
# What hosts ask beside the conversation, with all of it before.
_SIDE = re.compile(r"\[SUGGESTION MODE")
_LINES_OF_A_TEST = 90


class Act(StrEnum):
    """What a driver does around a turn."""

    ASK = "ask"
    # Stop the program's answer while it is streamed.
    INTERRUPT = "interrupt"
    # Take back the turn before, and ask this one in its place.
    REWIND = "rewind"
    # End the program, and resume its session in a new process.
    RESTART = "restart"


@dataclass(frozen=True)
class Hands:
    """The tools of a host, as its model calls them."""

    shell: Callable[[str], ToolCall]
    writes: Callable[[str, str], ToolCall]
    # The whole of a long file, in one result.
    reads: Callable[[str], ToolCall]
    # A prompt for a subagent.
    delegates: Callable[[str], ToolCall] | None = None
    # Where agents are begun by one call and waited for by another: the other, for the agent of this number.
    awaits: Callable[[Request, int], ToolCall] | None = None
    # A search of LCM for these words.
    recalls: Callable[[str], ToolCall] | None = None


Step = Answer | Callable[[Request], Answer]


@dataclass(frozen=True)
class Turn:
    """One prompt and what the model answers to it, step by step: calls, and words at the end."""

    name: str
    asks: str
    steps: tuple[Step, ...]
    act: Act = Act.ASK
    # The model's first attempt at the last step, which the vendor breaks off.
    breaks: Answer | None = None

    @property
    def prompt(self) -> str:
        return f"[turn {self.name}] {self.asks}"

    @property
    def done(self) -> str:
        """The last words of the turn."""
        last = self.steps[-1]
        return last.text if isinstance(last, Answer) else ""


def forty_turns(hands: Hands) -> list[Turn]:
    """Turns 1 to 40: turn 20 takes the place of turn 19."""
    turns = {turn.name: turn for turn in (*_usual(hands), *_special(hands))}
    return [turns[str(number)] for number in range(1, 41)]


def subagents(hands: Hands) -> list[Turn]:
    """What the model of a subagent is asked in turn 30, and answers."""
    if hands.delegates is None:
        return []
    return [
        Turn(
            f"agent-{name}",
            f"Find out about {name}.",
            (Answer(f"Looking for {name}.", (hands.shell(f"echo {name} was seen at dawn"),)), Answer(f"{name}!")),
        )
        for name in ("heron", "otter")
    ]


def _usual(hands: Hands) -> Iterator[Turn]:
    """An edit of a file and the output of tests."""
    for number in range(1, 41):
        text = "".join(f"def step_{number}_{each}(value): return value + {each}\n" for each in range(20))
        yield Turn(
            str(number),
            f"Write module_{number}.py, and test it.",
            (
                Answer(f"Writing module {number}.", (hands.writes(f"module_{number}.py", text),)),
                Answer(calls=(hands.shell(output_of_tests(number)),)),
                Answer(f"Module {number} is written; its tests pass."),
            ),
        )


def _special(hands: Hands) -> Iterator[Turn]:
    yield Turn("1", "Look around.", (Answer("I look.", (hands.shell("pwd; ls"),)), Answer("There is not much here.")))
    yield Turn(
        "2",
        f"Write down what we agreed: {FACT}",
        (Answer("Noting it.", (hands.writes("agreed.py", FACT + "\n"),)), Answer("It is noted.")),
    )
    yield Turn(
        "8",
        "Read the long log.",
        (
            Answer("Making it.", (hands.shell(f"seq -f 'line %07g of the log' {LONG_BYTES // 24} > long.log"),)),
            Answer("Reading it.", (hands.reads("long.log"),)),
            Answer("It is long."),
        ),
    )
    both = (hands.shell("echo one; sleep 0.2; echo first"), hands.shell("echo two; echo second"))
    yield Turn("10", "Run both.", (Answer("Both at once.", both), Answer("Both have run.")))
    yield Turn(
        "12",
        "Think about it: «naïve» 😀, tabs\tand\nlines  with  blanks.",
        (
            Answer(thinking="Which of the two?", calls=(hands.shell("printf 'a\\tb\\r\\n😀 ü\\n'"),)),
            Answer("The first: «ä😀».\n\n\tIndented.", thinking="The first."),
        ),
    )
    slowly = Answer("".join(f"Sentence {each} of a long answer. " for each in range(60)), pause=0.1)
    yield Turn("13", "Tell me a long story.", (slowly,), Act.INTERRUPT)
    yield Turn("14", "Shorter, please.", (Answer("Once upon a time, the end."),))
    whole = Answer("This answer comes whole at the second attempt. " * 8)
    yield Turn("15", "Tell me another.", (whole,), breaks=replace(whole, cut_after=8))
    yield Turn("19", "Paint it blue.", (Answer("Painting.", (hands.shell("echo blue"),)), Answer("It is blue.")))
    yield Turn(
        "20", "Paint it green.", (Answer("Painting.", (hands.shell("echo green"),)), Answer("It is green.")), Act.REWIND
    )
    yield Turn("25", "Are you still there?", (Answer("I am, after the restart."),), Act.RESTART)
    if hands.delegates is not None:
        asked = tuple(hands.delegates(turn.prompt) for turn in subagents(hands))
        waits = [_waiting_for(hands.awaits, number) for number in range(len(asked))] if hands.awaits else []
        yield Turn("30", "Ask both agents.", (Answer("Asking them.", asked), *waits, Answer("Both have answered.")))
    recall = hands.recalls("retry_ceiling") if hands.recalls else hands.shell("cat agreed.py")
    yield Turn("39", "What did we agree on?", (Answer("Looking it up.", (recall,)), _as_found))


def _waiting_for(awaits: Callable[[Request, int], ToolCall], number: int) -> Callable[[Request], Answer]:
    return lambda request: Answer(calls=(awaits(request, number),))


def _as_found(request: Request) -> Answer:
    """The fact, if the newest result has it."""
    found = re.search(r"retry_ceiling\W+(\d+)", newest_result(request))
    return Answer(f"It is {found[1]}." if found else "I do not know.")


def output_of_tests(number: int) -> str:
    """A command that prints what a run of tests would."""
    count = f"$(seq {_LINES_OF_A_TEST})"
    return f'for i in {count}; do echo "tests/test_{number}.py::test_$i PASSED in 0.0$i s"; done; echo {number} passed'


def _with_ids(turn: Turn, place: int, answer: Answer) -> Answer:
    """The answer, each call with an id that says where it belongs."""
    calls = enumerate(answer.calls)
    return replace(
        answer, calls=tuple(replace(call, id=f"call_{turn.name}_{place}_{number}") for number, call in calls)
    )


@dataclass
class ScriptedModel:
    """Answers each request by the turn that it asks, and keeps both."""

    turns: Sequence[Turn]
    agents: Sequence[Turn] = ()
    answered: list[tuple[Request, Answer | Refusal]] = field(default_factory=list)
    # What was asked without a mark.
    unknown: list[str] = field(default_factory=list)
    tried: Counter[tuple[str, int]] = field(default_factory=Counter)

    def __call__(self, request: Request) -> Answer | Refusal:
        if _SIDE.search(json.dumps(rows_of(request.json)[-1:])):
            return Answer("run the tests")
        answer = self._answer(request)
        self.answered.append((request, answer))
        return answer

    def _answer(self, request: Request) -> Answer:
        turns = {turn.name: turn for turn in (*self.turns, *self.agents)}
        marks = [mark for text in texts_of_people(request.json) for mark in _MARK.findall(text) if mark in turns]
        if not marks:
            self.unknown.append(json.dumps(rows_of(request.json)[-1])[-1000:])
            return Answer("Nothing was asked.")
        turn = turns[marks[-1]]
        ids = re.findall(rf"call_{turn.name}_(\d+)_\d+", request.body.decode())
        place = min(1 + max(map(int, ids), default=-1), len(turn.steps) - 1)
        self.tried[turn.name, place] += 1
        if turn.breaks is not None and place == len(turn.steps) - 1 and self.tried[turn.name, place] == 1:
            return turn.breaks
        step = turn.steps[place]
        return _with_ids(turn, place, step if isinstance(step, Answer) else step(request))


def rows_of(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages or items of a request in any of the three APIs."""
    return [row for row in body.get("messages", body.get("input")) or [] if isinstance(row, dict)]


def texts_of_people(body: Mapping[str, Any]) -> Iterator[str]:
    """What stands in messages of the user, without results of tools."""
    for row in rows_of(body):
        if row.get("role") == "user":
            content = row.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            yield from (str(each["text"]) for each in blocks if each.get("type") in ("text", "input_text"))


def newest_result(request: Request) -> str:
    """The JSON of the last result of a tool."""
    newest = ""
    for row in rows_of(request.json):
        blocks = row.get("content") if isinstance(row.get("content"), list) else []
        if row.get("role") == "tool" or str(row.get("type", "")).endswith("_output"):
            newest = str(row)
        newest = next((str(each) for each in reversed(blocks) if each.get("type") == "tool_result"), newest)
    return newest
