"""Histories of agents, as each of the three APIs has them on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import strategies as st

from lcmsite.gateway.lookups.calls_of_answers import Call, result_rows
from lcmsite.gateway.surfaces import Surface

WORDS = ("alpha", "naïve", "漢字", "def_f(x):", "\\n\t{}[]", "tests/unit/test_a.py", "->", '"quoted"', "failed")
# What a long history holds near its beginning.
FACT = "retry_ceiling = 4711  # agreed with heron"


@dataclass(frozen=True)
class Step:
    """One answer of the model, and the results of its calls."""

    text: str
    thought: str = ""
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class AgentTurn:
    """What a person asks, the steps that follow, and instructions that come between."""

    questions: tuple[str, ...]
    steps: tuple[Step, ...]
    reminder: str = ""


@dataclass
class Wire:
    """The entries of a request as they grow; each has a seq of its own."""

    surface: Surface
    entries: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    # Whether the newest message has a cache breakpoint, as Claude Code sets it; it moves on with each request.
    caches: bool = True

    def ask(self, text: str) -> None:
        match self.surface:
            case Surface.MESSAGES:
                self.entries.append({"role": "user", "content": [{"type": "text", "text": text}]})
            case Surface.CHAT:
                self.entries.append({"role": "user", "content": text})
            case Surface.RESPONSES:
                content = [{"type": "input_text", "text": text}]
                self.entries.append({"type": "message", "role": "user", "content": content})

    def instruct(self, text: str) -> None:
        role = "developer" if self.surface is Surface.RESPONSES else "system"
        self.entries.append({"role": role, "content": text})

    def answer(self, step: Step) -> list[str]:
        """What the model answers; returns the ids of its calls."""
        ids = [f"call_{self.calls + place}" for place in range(len(step.results))]
        self.calls += len(ids)
        if self.surface is Surface.MESSAGES:
            hidden = {"type": "redacted_thinking", "data": "EmwK"}
            thought = {"type": "thinking", "thinking": step.thought, "signature": "c2ln"}
            thoughts = [hidden, thought] if step.thought else []
            texts = [{"type": "text", "text": step.text}] if step.text else []
            calls = [{"type": "tool_use", "id": each, "name": "Read", "input": {"path": "a.py"}} for each in ids]
            self.entries.append({"role": "assistant", "content": [*thoughts, *texts, *calls]})
        elif self.surface is Surface.CHAT:
            function = {"name": "Read", "arguments": '{"path": "a.py"}'}
            calls = [{"id": each, "type": "function", "function": function} for each in ids]
            self.entries.append(
                {"role": "assistant", "content": step.text or None, **({"tool_calls": calls} if calls else {})}
            )
        else:
            if step.thought:
                self.entries.append(
                    {"type": "reasoning", "id": f"rs_{self.calls}", "summary": [], "encrypted_content": "gAAA"}
                )
            if step.text or not ids:
                content = [{"type": "output_text", "text": step.text, "annotations": []}]
                self.entries.append(
                    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
                )
            self.entries += [
                {"type": "function_call", "call_id": each, "name": "Read", "arguments": '{"path": "a.py"}'}
                for each in ids
            ]
        return ids

    def return_results(self, ids: Sequence[str], results: Sequence[str]) -> None:
        calls = [Call(each, "Read", {}) for each in ids]
        self.entries += result_rows(self.surface, list(zip(calls, results, strict=True)))

    def body(self, **more: Any) -> bytes:
        """A request of all entries, with system and tools."""
        # As clients write it: with blanks, and characters as they are.
        parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
        match self.surface:
            case Surface.MESSAGES:
                request = {
                    "model": "fake",
                    "max_tokens": 1000,
                    "system": [{"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}}],
                    "messages": self._cached() if self.caches else self.entries,
                    "tools": [{"name": "Read", "description": "Read a file.", "input_schema": parameters}],
                    "unknown_field": {"kept": [1.0, 2e3, None]},
                }
            case Surface.CHAT:
                function = {"name": "Read", "description": "Read a file.", "parameters": parameters}
                tools = [{"type": "function", "function": function}]
                request = {
                    "model": "fake",
                    "messages": [{"role": "system", "content": "You help."}, *self.entries],
                    "tools": tools,
                }
            case Surface.RESPONSES:
                tools = [{"type": "function", "name": "Read", "parameters": parameters, "strict": None}]
                request = {"model": "fake", "instructions": "You help.", "input": self.entries, "tools": tools}
        return json.dumps({**request, **more, "stream": True}, ensure_ascii=False).encode()

    def seqs(self) -> list[int | None]:
        """The seqs of the entries in a request's list."""
        own: list[int | None] = list(range(1, len(self.entries) + 1))
        return [None, *own] if self.surface is Surface.CHAT else own

    def _cached(self) -> list[dict[str, Any]]:
        """The messages, with a breakpoint on the newest of the user."""
        place = max(place for place, entry in enumerate(self.entries) if entry["role"] == "user")
        last = self.entries[place]
        *blocks, block = last["content"]
        cached = {**last, "content": [*blocks, {**block, "cache_control": {"type": "ephemeral"}}]}
        return [*self.entries[:place], cached, *self.entries[place + 1 :]]


def requests_of(surface: Surface, turns: Sequence[AgentTurn], *, caches: bool = True) -> Iterator[Wire]:
    """The wire at each moment that the agent calls the model."""
    wire = Wire(surface, caches=caches)
    for turn in turns:
        for question in turn.questions:
            wire.ask(question)
        if turn.reminder:
            wire.instruct(turn.reminder)
        for step in turn.steps:
            yield wire
            ids = wire.answer(step)
            if ids:
                wire.return_results(ids, step.results)


def a_history(seed: int, turns: int) -> list[AgentTurn]:
    """A random history, from a seed: drawing each word would take too long."""
    chance = Random(seed)

    def text(most_words: int) -> str:
        return f"{chance.choice(WORDS)} {chance.randint(0, 999)} " * chance.randint(1, most_words)

    def step() -> Step:
        results = tuple(text(100) for _ in range(chance.randint(1, 3)))
        return Step(text(30) * chance.randint(0, 1), text(20) * chance.randint(0, 1), results)

    return [
        AgentTurn(
            questions=tuple(text(40) for _ in range(chance.choice((1, 1, 2)))),
            steps=(*(step() for _ in range(chance.choice((0, 1, 3, 8)))), Step(text(40))),
            reminder=chance.choice(("", "", "Agents: Explore, Plan.", text(100))),
        )
        for _ in range(turns)
    ]


histories = st.builds(a_history, seed=st.integers(0, 2**32), turns=st.integers(2, 4))
