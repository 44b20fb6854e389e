"""OpenCode and pi as programs that stay: one process for many turns, spoken to as their own clients do."""

from __future__ import annotations

import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.clients.live_programs import SECONDS, AgentOfLines, Lines, LiveAgent
from tests.clients.programs import Person, agent_program, own_environment
from tests.flows.processes import stop
from tests.lcmsite.operating import eventually, free_port

# What pi has for people at a terminal alone: its tree; and a result as long as a tool likes.
EXTENSION = r"""
import { readFileSync } from "node:fs";
import { join } from "node:path";

export default function (pi: any) {
  pi.registerCommand("back", {
    description: "Leave the newest prompt for another",
    handler: async (_args: string, ctx: any) => {
      const asked = ctx.sessionManager.getBranch().filter((each: any) => each.message?.role === "user");
      await ctx.navigateTree(asked[asked.length - 1].id);
    },
  });
  pi.registerTool({
    name: "read_all",
    label: "Read all",
    description: "Read a file to its end",
    parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    execute: async (_id: string, { name }: any, _signal: any, _update: any, ctx: any) => {
      return { content: [{ type: "text", text: readFileSync(join(ctx.cwd, name), "utf8") }], details: {} };
    },
  });
  pi.registerTool({
    name: "lcm_grep",
    label: "Search LCM",
    description: "Search everything that was said",
    parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
    execute: async (_id: string, given: any) => {
      const answer = await fetch(process.env.LCM_MCP_URL!, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${process.env.LCM_TOKEN}`,
          "Content-Type": "application/json",
          Accept: "application/json, text/event-stream",
        },
        body: JSON.stringify({
          jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "lcm_grep", arguments: given },
        }),
      });
      const text = await answer.text();
      const data = text.startsWith("{") ? text : text.split("\n").find((line) => line.startsWith("data:"))!.slice(5);
      return { content: JSON.parse(data).result.content, details: {} };
    },
  });
}
"""


def settings_of_opencode(url: str, *, window: int, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """OpenCode's settings, with a model at this address of the API."""
    model = {"name": "fake", "limit": {"context": window, "output": 4000}}
    options = {"baseURL": url, "apiKey": "x", "headers": headers or {}}
    return {
        # OpenCode adds the schema itself where it is missing.
        "$schema": "https://opencode.ai/config.json",
        "model": "fake/fake",
        "permission": {"*": "allow"},
        "lsp": False,
        "formatter": False,
        # Its results are as long as they are.
        "tool_output": {"max_lines": 100_000, "max_bytes": 1_000_000},
        "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"fake": model}}},
    }


def models_of_pi(url: str, *, window: int, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """Pi's list of models, with one at this address of the API."""
    model = {"id": "fake", "contextWindow": window, "maxTokens": 4000}
    fake = {"baseUrl": url, "api": "openai-completions", "apiKey": "x", "headers": headers or {}}
    return {"providers": {"fake": {**fake, "models": [model]}}}


@dataclass
class OpenCode(LiveAgent):
    """A session of OpenCode, spoken to through its server."""

    home: Path
    # Of the API, with its version.
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    window: int = 200_000
    session: str = ""
    asked: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    port: int = 0
    under_way: Future[dict[str, Any]] | None = None
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def start(self) -> None:
        self._configure()
        project = self.home / "project"
        project.mkdir(exist_ok=True)
        self.port = free_port()
        with (self.home / "opencode.log").open("ab") as log:
            self.process = subprocess.Popen(
                [agent_program("opencode"), "serve", "--port", str(self.port)],
                env=own_environment(
                    self.home,
                    OPENCODE_DISABLE_MODELS_FETCH="1",
                    OPENCODE_DISABLE_AUTOUPDATE="1",
                    OPENCODE_DISABLE_LSP_DOWNLOAD="1",
                ),
                cwd=project,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        # It first installs a package of its own from npm; without a network, that fails only after a while.
        eventually(self._is_served, seconds=2 * SECONDS)
        if not self.session:
            self.session = self.ask("POST", "session", {})["id"]

    def begin(self, text: str) -> None:
        body = {"parts": [{"type": "text", "text": text}]}
        self.under_way = self.threads.submit(self.ask, "POST", f"session/{self.session}/message", body)

    def finish(self) -> str:
        assert self.under_way is not None
        answer = self.under_way.result(timeout=SECONDS)
        if parent := answer["info"].get("parentID"):
            self.asked.append(parent)
        texts = [part["text"] for part in answer["parts"] if part["type"] == "text"]
        return texts[-1] if texts else ""

    def interrupt(self) -> None:
        self.ask("POST", f"session/{self.session}/abort", {})

    def take_back(self) -> None:
        self.ask("POST", f"session/{self.session}/revert", {"messageID": self.asked.pop()})

    def end(self) -> None:
        if self.process is not None:
            stop([self.process])
            self.process = None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the server of this session."""
        url = f"http://127.0.0.1:{self.port}/{path}"
        answer = httpx2.request(method, url, json=body, timeout=SECONDS, trust_env=False)
        assert answer.status_code < 300, answer.text[:1000]
        return answer.json() if answer.content else None

    def _configure(self) -> None:
        settings = settings_of_opencode(self.url, window=self.window, headers=self.headers)
        Person(self.home).writes(".config/opencode/opencode.json", {**settings, **self.settings})

    def _is_served(self) -> bool:
        try:
            return httpx2.get(f"http://127.0.0.1:{self.port}/session", trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False


@dataclass
class Pi(AgentOfLines):
    """A session of pi, spoken to line by line."""

    home: Path
    # Of the API, with its version.
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    window: int = 200_000
    session: str = ""
    number: int = 0

    def start(self) -> None:
        self._configure()
        again = ["--session", self.session] if self.session else []
        self.lines = Lines(
            [agent_program("pi"), "--mode", "rpc", "--offline", "--provider", "fake", "--model", "fake", *again],
            env=own_environment(self.home, **self.environment),
            cwd=self.home / "project",
        )
        self.session = self.ask("get_state")["sessionId"]

    def begin(self, text: str) -> None:
        self.ask("prompt", message=text)

    def finish(self) -> str:
        """Wait for the end of the turn; pi tries again by itself where an answer breaks off."""
        assert self.lines is not None
        while True:
            ended = self.lines.until(lambda event: event["type"] == "agent_end")
            answer = ended["messages"][-1]
            if answer.get("stopReason") != "error":
                return "".join(each["text"] for each in answer["content"] if each["type"] == "text")

    def interrupt(self) -> None:
        self.ask("abort")

    def take_back(self) -> None:
        """Leave the newest turn for another branch of the session's tree."""
        self.ask("prompt", message="/back")

    def ask(self, command: str, **values: Any) -> dict[str, Any]:
        """Ask pi for something, and wait until it answers; events of a turn stay for who waits for them."""
        assert self.lines is not None
        self.number += 1
        number = str(self.number)
        answer = self.lines.ask(
            {"type": command, "id": number, **values},
            lambda event: event["type"] == "response" and event.get("id") == number,
        )
        assert answer["success"], answer
        return dict(answer.get("data") or {})

    def _configure(self) -> None:
        person = Person(self.home)
        person.writes(".pi/agent/models.json", models_of_pi(self.url, window=self.window, headers=self.headers))
        person.writes(".pi/agent/settings.json", {"retry": {"baseDelayMs": 200}})
        extension = self.home / ".pi/agent/extensions/at_hand.ts"
        extension.parent.mkdir(exist_ok=True)
        extension.write_text(EXTENSION)
