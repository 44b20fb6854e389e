"""The sample's script: somebody who is new here asks about the code, an agent looks things up and answers.

Every tool output and every answer is made of what the files really contain. For the same files and seed, the same
conversation. Pure.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import zip_longest
from typing import Any

from conversations.types import NewMessage, NewPart, PartType, Role
from lcmsite.sample import answers
from lcmsite.sample.code_base import ROOMS, CodeBase, CodeFile, Definition, Knob
from lcmsite.sample.tools import ToolError, Tools

AT_LEAST = 420
SEED = 2026
BEGINNING = datetime(2026, 1, 12, 9, 0, tzinfo=UTC)
SYSTEM = (
    "You help a developer who is new to LCM, a server that gives agents a memory that never loses a word. Look into "
    "the code before you answer, quote what it says, and name files and lines. Say so when you found nothing."
)


def sample_messages(code: CodeBase, *, seed: int = SEED, at_least: int = AT_LEAST) -> list[NewMessage]:
    """The conversation: at least this long, if there is code enough to talk about."""
    script = Script(code=code, chance=random.Random(seed))
    script.say(Role.SYSTEM, SYSTEM)
    script.look_around()
    for exchange in script.exchanges():
        if len(script.messages) >= at_least:
            break
        exchange()
    script.remember()
    return script.messages


@dataclass
class Script:
    """Writes the messages down, one exchange after the other."""

    code: CodeBase
    chance: random.Random
    messages: list[NewMessage] = field(default_factory=list)
    clock: datetime = BEGINNING
    calls: int = 0
    wishes: list[tuple[Knob, str]] = field(default_factory=list)

    @property
    def tools(self) -> Tools:
        return Tools(self.code)

    def exchanges(self) -> Iterator[Callable[[], None]]:
        """What can be asked, in an order as it comes up: room by room, each time something else."""
        # Of the tests only those are parsed that are asked about.
        files = [file for file in self.code.files if file.path.endswith(".py") and not file.is_test and file.doc]
        definitions = [
            (file, each)
            for file in files
            for each in file.definitions
            if each.is_public and each.doc and each.last_line - each.line >= 5
        ]
        wishes = [
            (file, knob, other) for file in files for knob in file.knobs if (other := answers.another_value(knob))
        ]
        kinds: list[list[Callable[[], None]]] = [
            [partial(self.ask_about_file, file) for file in files],
            [partial(self.ask_about_definition, file, each) for file, each in definitions],
            [partial(self.ask_about_tests, file) for file in files if self.code.tests_of(file)],
            [partial(self.ask_about_tables, file) for file in self.code.files if file.tables],
            [partial(self.wish, file, knob, other) for file, knob, other in wishes],
            [partial(self.ask_with_a_slip, file) for file in files],
        ]
        for kind in kinds:
            self.chance.shuffle(kind)
        for turn in zip_longest(*kinds):
            yield from (exchange for exchange in turn if exchange is not None)

    def look_around(self) -> None:
        rooms = [room for room in dict.fromkeys(file.path.split("/")[0] for file in self.code.files) if room != "tests"]
        self.say(Role.USER, "Hello! I start on this project today. What is where, and where should I begin to read?")
        self.use(*(("list_files", {"folder": room}) for room in rooms))
        self.say(Role.ASSISTANT, answers.overview(self.code, rooms))

    def ask_about_file(self, file: CodeFile) -> None:
        self.say(
            Role.USER,
            self.chance.choice(
                [
                    f"What is `{file.path}` for, and who depends on it?",
                    f"I keep seeing `{file.module}` in imports. What does it promise?",
                    f"Please read `{file.path}` and give me the short version.",
                ]
            ),
        )
        self.use(("read_file", {"path": file.path}))
        self.use(("grep", {"pattern": f"{file.module}( import|$)"}))
        self.say(Role.ASSISTANT, answers.about_file(self.code, file))

    def ask_about_definition(self, file: CodeFile, definition: Definition) -> None:
        name = definition.name.split(".")[-1]
        self.say(
            Role.USER,
            self.chance.choice(
                [
                    f"How does `{definition.name}` work? It is somewhere in {file.path.split('/')[0]}.",
                    f"I have to change `{definition.name}`. What do I have to know before?",
                    f"Who calls `{definition.name}`, and what can go wrong in it?",
                ]
            ),
        )
        self.use(
            ("grep", {"pattern": rf"(def|class) {name}\b", "folder": file.path.split("/")[0]}),
            thought=f"`{name}` may be defined more than once; look before reading.",
        )
        self.use(
            ("read_file", {"path": file.path, "first_line": definition.line, "last_line": definition.last_line}),
            ("grep", {"pattern": rf"\b{name}\("}),
        )
        self.say(Role.ASSISTANT, answers.about_definition(self.code, file, definition))

    def ask_about_tests(self, file: CodeFile) -> None:
        tests = self.code.tests_of(file)
        assert tests is not None
        self.say(Role.USER, f"Which promises of `{file.path}` are tested?")
        self.use(("run_tests", {"path": tests.path, "collect_only": True}), ("read_file", {"path": tests.path}))
        self.say(Role.ASSISTANT, answers.about_tests(file, tests))

    def ask_about_tables(self, file: CodeFile) -> None:
        self.say(Role.USER, f"Which tables does `{file.path}` make, and with which columns?")
        self.use(("read_file", {"path": file.path}))
        self.say(Role.ASSISTANT, answers.about_tables(file))

    def ask_with_a_slip(self, file: CodeFile) -> None:
        """People misremember paths, and tools say so."""
        room, _, rest = file.path.partition("/")
        wrong = f"{self.chance.choice([other for other in ROOMS if other != room])}/{rest}"
        if self.code.file(wrong) is None:
            self.say(Role.USER, f"Open `{wrong}` and tell me how long it is.")
            self.use(("read_file", {"path": wrong}))
            self.use(("list_files", {"folder": file.path.rpartition("/")[0]}))
            self.say(Role.ASSISTANT, answers.about_slip(wrong, file))

    def wish(self, file: CodeFile, knob: Knob, other: str) -> None:
        self.say(
            Role.USER,
            f"Please remember for later: on our staging machine I want `{knob.name}` to be {other}. Is that possible?",
        )
        self.use(("grep", {"pattern": rf"\b{knob.name}\b", "folder": file.path.split("/")[0]}))
        self.say(Role.ASSISTANT, answers.about_wish(file, knob, other))
        self.wishes.append((knob, other))

    def remember(self) -> None:
        self.say(Role.USER, "That is enough for today. What did I ask you to remember for our staging machine?")
        self.say(Role.ASSISTANT, answers.about_wishes(self.wishes))

    def use(self, *calls: tuple[str, dict[str, Any]], thought: str = "") -> None:
        """The agent calls tools, all in one message, and gets an answer to each."""
        ids = [f"call_{self.calls + number:04}" for number in range(1, len(calls) + 1)]
        self.calls += len(calls)
        pending = [
            NewPart(PartType.TOOL, tool_call_id=id, tool_name=name, tool_input=arguments, tool_status="pending")
            for id, (name, arguments) in zip(ids, calls, strict=True)
        ]
        thoughts = [NewPart(PartType.REASONING, text_content=thought)] if thought else []
        self._write(NewMessage(Role.ASSISTANT, parts=(*thoughts, *pending)))
        for id, (name, arguments) in zip(ids, calls, strict=True):
            self._write(NewMessage(Role.TOOL, parts=(self._result(id, name, arguments),)))

    def say(self, role: Role, text: str) -> None:
        self._write(NewMessage(role, text, parts=(NewPart(PartType.TEXT, text_content=text),)))

    def _result(self, call_id: str, name: str, arguments: dict[str, Any]) -> NewPart:
        try:
            output = self.tools.call(name, arguments)
        except ToolError as complaint:
            return NewPart(PartType.TOOL, tool_call_id=call_id, tool_error=str(complaint), tool_status="error")
        return NewPart(PartType.TOOL, tool_call_id=call_id, tool_output=output, tool_status="completed")

    def _write(self, message: NewMessage) -> None:
        """At its time, under its own key."""
        values = {"created_at": self.clock, "idempotency_key": f"sample-{len(self.messages) + 1}"}
        self.messages.append(NewMessage(message.role, message.content, message.parts, **values))  # type: ignore[arg-type]
        self.clock += timedelta(seconds=self.chance.randint(4, 90))
        if self.clock.hour >= 18:
            self.clock = self.clock.replace(hour=9, minute=self.chance.randint(0, 40)) + timedelta(days=1)
