"""The MCP server: tools, resources and a prompt, on the SDK's Server class.

It does not use the SDK's decorators for tools, because names, schemas and results come from the catalogue. Every
handler converts every error itself: the SDK would send the text of an unexpected error to the client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, TypeVar

import anyio
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from lcmsite.access.keys import Caller
from lcmsite.catalogue.operation import Operation
from lcmsite.mcp import resources
from lcmsite.mcp.calls import CallRunner, report_problem, without_surrogates
from lcmsite.mcp.tool_list import TOOLS, tools

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")

INSTRUCTIONS = (
    "LCM keeps every message of every conversation word for word. lcm_grep searches; lcm_describe shows what a match "
    "covers and reads a message; lcm_expand opens a summary down to its messages; lcm_assemble returns the context to "
    "send to a model; lcm_append stores messages. Name a conversation by its number, id or session. Errors are JSON "
    "with code, detail, retryable and status."
)

SENT_MESSAGE = "lcm.message"
"""ASGI scope key of the original message, if the SDK got a copy without lone surrogates."""

SECONDS_BETWEEN_REPORTS = 2.0

# Agents that show a model the structured content of a tool result instead of its text.
STRUCTURE_SHOWING_AGENTS = ("claude-code", "codex-mcp-client")


def build_server(
    *,
    caller_of: Callable[[Context], Caller],
    runner: CallRunner,
    tools_of: Callable[[Context], Mapping[str, Operation]] = lambda context: TOOLS,
) -> Server[Any]:
    """Build a server; a request's caller and tools come from `caller_of`, `tools_of`."""

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        offered = tools_of(context)
        return ListToolsResult(
            tools=[each for each in tools(is_structured=_reads_structure(context)) if each.name in offered]
        )

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        offered = tools_of(context)
        operation = offered.get(params.name)
        if operation is None:
            raise MCPError(INVALID_PARAMS, f"There is no such tool; the tools are {', '.join(offered)}.")
        async with _reporting_progress(context, operation.summary):
            return await runner.run_operation(
                operation,
                _arguments(context, params),
                caller=lambda: caller_of(context),
                is_structured=_reads_structure(context),
            )

    async def list_resources(context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        cursor_given = (params and params.cursor) or ""
        found, cursor = await _run_or_raise(runner, lambda: resources.list_page(cursor_given, caller_of(context)))
        return ListResourcesResult(resources=found, next_cursor=cursor)

    async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        contents = await _run_or_raise(runner, lambda: resources.read_resource(str(params.uri), caller_of(context)))
        return ReadResourceResult(contents=[contents])

    return Server(
        "lcm",
        title="LCM",
        version=version("lcm"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=_list_resource_templates,
        on_read_resource=read_resource,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
    )


async def _list_resource_templates(
    context: Context, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)


async def _list_prompts(context: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
    return ListPromptsResult(prompts=list(resources.PROMPTS))


async def _get_prompt(context: Context, params: GetPromptRequestParams) -> GetPromptResult:
    given = params.arguments or {}
    if params.name != resources.LOOKUP or given.keys() - {"question", "conversation_id"}:
        raise MCPError(INVALID_PARAMS, f"The only prompt is {resources.LOOKUP}; it takes question and conversation_id.")
    return resources.build_prompt(**without_surrogates(given))


def _arguments(context: Context, params: CallToolRequestParams) -> Mapping[str, Any]:
    """Return the tool's arguments exactly as sent, lone surrogates included."""
    if context.request is not None and (sent := context.request.scope.get(SENT_MESSAGE)):
        return sent["params"].get("arguments") or {}
    return params.arguments or {}


def _reads_structure(context: Context) -> bool:
    """Whether the client gives structured content to a program, not to the model."""
    client = context.session.client_params
    if client is not None:
        return client.client_info.name not in STRUCTURE_SHOWING_AGENTS
    # HTTP is stateless here: most requests identify their client only by this header.
    agent = context.request.headers.get("user-agent", "") if context.request is not None else ""
    return agent.partition("/")[0] not in STRUCTURE_SHOWING_AGENTS


async def _run_or_raise(runner: CallRunner, work: Callable[[], T]) -> T:
    """Run the work and return its result. Raises MCPError for any error."""
    try:
        return await runner.run(work)
    except Exception as refusal:
        problem = report_problem(refusal)
        code = INTERNAL_ERROR if problem.status >= 500 else INVALID_PARAMS
        raise MCPError(code, problem.detail, problem.as_json()) from None


@asynccontextmanager
async def _reporting_progress(context: Context, doing: str) -> AsyncIterator[None]:
    """Report progress at the start, at the end and at intervals, if requested.

    The real progress is unknown: the reported value approaches 1, and reaches it at the end.
    """
    if not context.meta or context.meta.get("progress_token") is None:
        yield
        return

    async def report(progress: float) -> None:
        await context.session.report_progress(progress, total=1.0, message=doing)

    async def report_at_intervals() -> None:
        reports = 0
        while True:
            await anyio.sleep(SECONDS_BETWEEN_REPORTS)
            reports += 1
            await report(reports / (reports + 1))

    await report(0.0)
    async with anyio.create_task_group() as group:
        group.start_soon(report_at_intervals)
        yield
        group.cancel_scope.cancel()
    await report(1.0)
