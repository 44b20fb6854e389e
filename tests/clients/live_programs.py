"""Agent programs that stay: one process for many turns, spoken to as their own clients speak to them."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.programs import agent_program, own_environment

SECONDS = 120

Event = dict[str, Any]


class Lines:
    """A process that speaks JSON, a line for each event."""

    def __init__(self, command: Sequence[str], *, env: dict[str, str], cwd: Path) -> None:
        cwd.mkdir(parents=True, exist_ok=True)
        self.errors = (cwd.parent / "errors.log").open("ab")
        self.process = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.events: queue.Queue[Event | None] = queue.Queue()
        self.seen: list[Event] = []
        threading.Thread(target=self._read, daemon=True).start()

    def write(self, event: Event) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(event).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, found: Callable[[Event], bool]) -> Event:
        """The next event of which this is true."""
        while True:
            event = self.events.get(timeout=SECONDS)
            assert event is not None, f"The program has ended: {self.seen[-3:]}"
            self.seen.append(event)
            if found(event):
                return event

    def waiting(self) -> list[Event | None]:
        """Take all events that nobody has read yet."""
        found = []
        while not self.events.empty():
            found.append(self.events.get())
        return found

    def ask(self, event: Event, is_answer: Callable[[Event], bool]) -> Event:
        """Write an event, and wait for its answer; what comes before it stays for whoever waits for the turn."""
        self.write(event)
        others: list[Event | None] = []
        while not is_answer(found := self.until(lambda event: True)):
            others.append(found)
        for each in [*others, *self.waiting()]:
            self.events.put(each)
        return found

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self.events.put(json.loads(line))
        self.events.put(None)


class LiveAgent(ABC):
    """A session of an agent program, of one process at a time."""

    session: str

    @abstractmethod
    def start(self) -> None:
        """Begin a session, or go on with it."""

    @abstractmethod
    def begin(self, text: str) -> None:
        """Say something."""

    @abstractmethod
    def finish(self) -> str:
        """Wait for the end of the turn; its last words."""

    @abstractmethod
    def interrupt(self) -> None:
        """Stop the turn."""

    @abstractmethod
    def take_back(self) -> None:
        """Go back to before the newest turn."""

    @abstractmethod
    def end(self) -> None:
        """End the process, if there is one."""

    def say(self, text: str) -> str:
        """Say something, and wait for the end of the turn; its last words."""
        self.begin(text)
        return self.finish()

    def restart(self) -> None:
        self.end()
        self.start()


class AgentOfLines(LiveAgent):
    """One that is spoken to line by line."""

    lines: Lines | None = None

    def end(self) -> None:
        if self.lines is not None:
            self.lines.end()
            self.lines = None


@dataclass
class ClaudeCode(AgentOfLines):
    """A session of Claude Code."""

    home: Path
    url: str
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    session: str = ""
    # Whether it asks nothing beside the conversation.
    is_quiet: bool = True
    # The newest answer of each turn.
    answers: list[str] = field(default_factory=list)

    def start(self, *, until: str = "") -> None:
        """Begin, or resume the session: all of it, or until this answer."""
        again = ["--resume", self.session] if self.session else []
        again += ["--resume-session-at", until] if until else []
        self.lines = Lines(
            [
                agent_program("claude"), "-p", "--verbose",
                *("--input-format", "stream-json", "--output-format", "stream-json"),
                *self.options, *again,
            ],
            env=own_environment(
                self.home,
                ANTHROPIC_BASE_URL=self.url,
                ANTHROPIC_API_KEY="x",
                DISABLE_TELEMETRY="1",
                DISABLE_AUTOUPDATER="1",
                CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS="1",
                **({"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"} if self.is_quiet else {}),
                **self.environment,
            ),
            cwd=self.home / "project",
        )  # fmt: skip

    def begin(self, text: str) -> None:
        content = [{"type": "text", "text": text}]
        self._write({"type": "user", "message": {"role": "user", "content": content}})
        if not self.is_quiet and not self.answers:
            # As an editor does, which shows it.
            self._control("title", subtype="generate_session_title", description=text, persist=False)

    def finish(self) -> str:
        """Wait until nothing is done any more; subagents may report after the end of the turn."""
        assert self.lines is not None
        newest = words = ""
        while True:
            event = self.lines.until(lambda event: event["type"] in ("assistant", "result", "system"))
            if event.get("subtype") == "session_state_changed" and event["state"] == "idle":
                break
            if event["type"] == "assistant" and not event.get("parent_tool_use_id"):
                newest = event["uuid"]
            # Others are of turns that a report began.
            if event["type"] == "result" and "origin" not in event:
                words = str(event.get("result", ""))
        self.session = event["session_id"]
        self.answers.append(newest)
        return words

    def interrupt(self) -> None:
        self._control("stop", subtype="interrupt")

    def take_back(self) -> None:
        self.end()
        del self.answers[-1]
        self.start(until=self.answers[-1])

    def _control(self, name: str, **request: object) -> None:
        self._write({"type": "control_request", "request_id": name, "request": request})

    def _write(self, event: Event) -> None:
        assert self.lines is not None
        self.lines.write(event)


@dataclass
class Codex(AgentOfLines):
    """A thread of Codex, spoken to through its app server."""

    home: Path
    url: str
    # Lines of config.toml: at its head, and of its provider.
    settings: str = ""
    of_provider: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    session: str = ""
    turns: list[str] = field(default_factory=list)
    asked: int = 0

    def start(self) -> None:
        """Begin a thread, or resume it."""
        folder = self.home / ".codex"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(
            f'model = "fake"\nmodel_provider = "lcm"\n{self.settings}\n[model_providers.lcm]\nname = "lcm"\n'
            f'base_url = "{self.url}/v1"\nenv_key = "FAKE_KEY"\nwire_api = "responses"\n{self.of_provider}\n'
        )
        self.lines = Lines(
            [agent_program("codex"), "app-server"],
            env=own_environment(self.home, FAKE_KEY="x", **self.environment),
            cwd=self.home / "project",
        )
        self._ask("initialize", clientInfo={"name": "tests", "version": "1"})
        self.lines.write({"method": "initialized"})
        bold = {"approvalPolicy": "never", "sandbox": "danger-full-access", "cwd": str(self.home / "project")}
        if self.session:
            self._ask("thread/resume", threadId=self.session, **bold)
        else:
            self.session = self._ask("thread/start", **bold)["thread"]["id"]

    def begin(self, text: str) -> None:
        begun = self._ask("turn/start", threadId=self.session, input=[{"type": "text", "text": text}])
        self.turns.append(begun["turn"]["id"])

    def finish(self) -> str:
        assert self.lines is not None
        words = ""
        while True:
            event = self.lines.until(lambda event: "method" in event)
            values = event.get("params") or {}
            if values.get("threadId") != self.session:
                continue
            item = values.get("item") or {}
            if event["method"] == "item/completed" and item.get("type") == "agentMessage":
                words = str(item["text"])
            if event["method"] == "turn/completed":
                return words

    def interrupt(self) -> None:
        self._ask("turn/interrupt", threadId=self.session, turnId=self.turns[-1])

    def take_back(self) -> None:
        self._ask("thread/revert", threadId=self.session, beforeTurnId=self.turns.pop())

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        assert self.lines is not None
        self.asked += 1
        number = self.asked
        answer = self.lines.ask(
            {"method": method, "id": number, "params": params},
            lambda event: event.get("id") == number and "method" not in event,
        )
        assert "error" not in answer, answer
        return dict(answer["result"])
