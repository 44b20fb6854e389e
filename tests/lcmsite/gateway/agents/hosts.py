"""Four agent programs behind the gateway: how each is started, and what the tools are called that its model has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.gateway.surfaces import Surface
from tests.clients.forty_turns import Hands
from tests.clients.live_opencode_and_pi import OpenCode, Pi
from tests.clients.live_programs import ClaudeCode, Codex, LiveAgent
from tests.clients.vendor import Request, ToolCall
from tests.lcmsite.gateway.agents.conftest import Lcm

# What a client may get of one result of a tool.
LONGEST_RESULT = 200_000
# Each would compact by itself long before the last turn, but in a window that the whole history fills.
OWN_WINDOW = 60_000
# pi counts a long result before it sends it.
WINDOW_OF_PI = 100_000
CLAUDE_TOOLS = "Bash,Read,Edit,Write,Agent"
CLAUDE_GREP = "mcp__lcm__lcm_grep"
CODEX_AGENTS = "multi_agent_v1"


@dataclass(frozen=True)
class Host:
    """An agent program; `start` takes the headers for the gateway, and whether this assembles its requests."""

    surface: Surface
    start: Callable[[Lcm, Path, dict[str, str], bool], LiveAgent]
    hands: Callable[[Path], Hands]

    def agent(self, lcm: Lcm, home: Path, *, is_assembled: bool = False) -> LiveAgent:
        headers = {"x-lcm-api-key": lcm.key, **({"x-lcm-mode": "assemble"} if is_assembled else {})}
        return self.start(lcm, home, headers, is_assembled)


def hands_of_claude_code(home: Path) -> Hands:
    project = home / "project"
    return Hands(
        shell=lambda command: ToolCall("Bash", {"command": command, "description": "Run"}),
        writes=lambda name, text: ToolCall("Write", {"file_path": str(project / name), "content": text}),
        reads=lambda name: ToolCall("Read", {"file_path": str(project / name)}),
        delegates=lambda prompt: ToolCall(
            "Agent", {"description": "Ask", "prompt": prompt, "subagent_type": "general-purpose"}
        ),
        recalls=lambda words: ToolCall(CLAUDE_GREP, {"query": words}),
    )


def claude_code(lcm: Lcm, home: Path, headers: dict[str, str], is_assembled: bool) -> ClaudeCode:
    bearer = {"Authorization": f"Bearer {lcm.key}"}
    servers = {"mcpServers": {"lcm": {"type": "http", "url": lcm.mcp_url, "headers": bearer}}}
    home.joinpath("mcp.json").write_text(json.dumps(servers))
    # All of LCM's tools would fill half of a window of 16,000 tokens.
    others = ",".join(f"mcp__lcm__{each.tool}" for each in CATALOGUE if each.tool != "lcm_grep")
    return ClaudeCode(
        home,
        lcm.before.url,
        (
            *("--tools", CLAUDE_TOOLS, "--allowedTools", f"{CLAUDE_TOOLS},{CLAUDE_GREP}"),
            *("--strict-mcp-config", "--mcp-config", str(home / "mcp.json"), "--disallowedTools", others),
        ),
        {
            "ANTHROPIC_CUSTOM_HEADERS": "\n".join(f"{name}: {value}" for name, value in headers.items()),
            "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS": str(LONGEST_RESULT),
            "ENABLE_TOOL_SEARCH": "false",
            # In a smaller one the long result alone, which it estimates before it sends it, has it compact.
            **({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "190000"} if is_assembled else {}),
        },
    )


def hands_of_codex(home: Path) -> Hands:
    def shell(command: str) -> ToolCall:
        return ToolCall("exec_command", {"cmd": command, "max_output_tokens": LONGEST_RESULT})

    def patch(name: str, text: str) -> ToolCall:
        added = "".join(f"+{line}\n" for line in text.splitlines())
        return shell(f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {name}\n{added}*** End Patch\nEOF")

    def wait_for_agent(request: Request, number: int) -> ToolCall:
        ids = list(dict.fromkeys(re.findall(r"agent_id\W+([0-9a-f-]{36})", request.body.decode())))
        return ToolCall("wait_agent", {"targets": [ids[number]], "timeout_ms": 60_000}, namespace=CODEX_AGENTS)

    return Hands(
        shell=shell,
        writes=patch,
        reads=lambda name: shell(f"cat {name}"),
        delegates=lambda prompt: ToolCall("spawn_agent", {"message": prompt}, namespace=CODEX_AGENTS),
        awaits=wait_for_agent,
        recalls=lambda words: ToolCall("lcm_grep", {"query": words}, namespace="mcp__lcm"),
    )


def codex(lcm: Lcm, home: Path, headers: dict[str, str], is_assembled: bool) -> Codex:
    written = ", ".join(f'"{name}" = "{value}"' for name, value in headers.items())
    server = f'url = "{lcm.mcp_url}"\nbearer_token_env_var = "LCM_KEY"\nenabled_tools = ["lcm_grep"]'
    window = "model_context_window = 120000\nmodel_auto_compact_token_limit = 100000" if is_assembled else ""
    return Codex(
        home,
        lcm.before.url,
        f"tool_output_token_limit = {LONGEST_RESULT}\n{window}",
        f"http_headers = {{ {written} }}\n[mcp_servers.lcm]\n{server}",
        {"LCM_KEY": lcm.key},
    )


def hands_of_opencode(home: Path) -> Hands:
    project = home / "project"
    return Hands(
        shell=lambda command: ToolCall("bash", {"command": command, "description": "Run"}),
        writes=lambda name, text: ToolCall("write", {"filePath": str(project / name), "content": text}),
        reads=lambda name: ToolCall("bash", {"command": f"cat {name}", "description": "Read"}),
        delegates=lambda prompt: ToolCall("task", {"description": "Ask", "prompt": prompt, "subagent_type": "general"}),
        recalls=lambda words: ToolCall("lcm_lcm_grep", {"query": words}),
    )


def opencode(lcm: Lcm, home: Path, headers: dict[str, str], is_assembled: bool) -> OpenCode:
    server = {"type": "remote", "url": lcm.mcp_url, "headers": {"Authorization": f"Bearer {lcm.key}"}}
    settings = {"mcp": {"lcm": server}, "permission": {"*": "allow", "lcm_*": "deny", "lcm_lcm_grep": "allow"}}
    agent = OpenCode(home, f"{lcm.before.url}/v1", headers, settings)
    agent.window = OWN_WINDOW if is_assembled else agent.window
    return agent


def hands_of_pi(home: Path) -> Hands:
    return Hands(
        shell=lambda command: ToolCall("bash", {"command": command}),
        writes=lambda name, text: ToolCall("write", {"path": name, "content": text}),
        reads=lambda name: ToolCall("read_all", {"name": name}),
        recalls=lambda words: ToolCall("lcm_grep", {"query": words}),
    )


def pi(lcm: Lcm, home: Path, headers: dict[str, str], is_assembled: bool) -> Pi:
    agent = Pi(home, f"{lcm.before.url}/v1", headers, {"LCM_MCP_URL": lcm.mcp_url, "LCM_TOKEN": lcm.key})
    agent.window = WINDOW_OF_PI if is_assembled else agent.window
    return agent


HOSTS = {
    "claude": Host(Surface.MESSAGES, claude_code, hands_of_claude_code),
    "codex": Host(Surface.RESPONSES, codex, hands_of_codex),
    "opencode": Host(Surface.CHAT, opencode, hands_of_opencode),
    "pi": Host(Surface.CHAT, pi, hands_of_pi),
}
