"""Run agents' tool calls as operations of the catalogue, in threads."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from mcp_types import CallToolResult, TextContent

from conversations.scope import conversation_named
from lcmsite.access.keys import Caller
from lcmsite.answers import found_texts  # noqa: F401 (registers renderers of results)
from lcmsite.answers.answer_text import text_of
from lcmsite.api.concurrency import CLIENT, Disconnected, gate
from lcmsite.catalogue.json_schema import Schema, fields_of, is_conversation
from lcmsite.catalogue.json_text import as_bytes
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.problems import INTERNAL, Busy, Problem, problem_of
from lcmsite.connections import closing_connections
from lcmsite.ops.metrics.counters import CALL_SECONDS, CALLS, CLIENT_LIMITS

logger = structlog.get_logger(__name__)

# JSON can contain lone surrogates, and agents that truncate texts send them; the SDK refuses such messages. The escape
# of every surrogate begins like this; UTF-8 itself has none.
_SURROGATE_ESCAPE = b"\\ud"

T = TypeVar("T")


def may_hold_surrogates(written: bytes) -> bool:
    """Whether this JSON may have a lone surrogate; False is certain."""
    return _SURROGATE_ESCAPE in written.lower()


def without_surrogates(value: Any) -> Any:
    """Replace each lone surrogate in a JSON value by a question mark."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=gate().limits.threads, thread_name_prefix="mcp")


@dataclass(frozen=True)
class CallRunner:
    """Runs calls in threads; the process's gate limits how many run at once.

    Up to `max_waiting_requests` more wait for a thread; others are refused.
    """

    threads: ThreadPoolExecutor = field(default_factory=_threads)
    running: set[object] = field(default_factory=set)

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread and close its connections. Raises Busy if too many wait."""
        if len(self.running) >= gate().limits.threads + settings.DEPLOYMENT.max_waiting_requests:
            CLIENT_LIMITS.labels("busy").inc()
            raise Busy("Too many calls are waiting; try again.")
        call = object()
        client = Disconnected()
        token = CLIENT.set(client)
        self.running.add(call)
        try:
            return await sync_to_async(closing_connections, thread_sensitive=False, executor=self.threads)(work)
        except asyncio.CancelledError:
            # The client disconnected or cancelled the call: signal it; the thread goes on until it notices.
            client.set()
            raise
        finally:
            self.running.discard(call)
            CLIENT.reset(token)

    async def run_operation(
        self,
        operation: Operation,
        given: Mapping[str, Any],
        *,
        caller: Callable[[], Caller],
        is_structured: bool = True,
    ) -> CallToolResult:
        """Run the operation; return its result or its error as a tool result.

        The text is for a model; with `is_structured`, the whole result is added as structured content.
        """

        def work() -> CallToolResult:
            began = time.perf_counter()
            with structlog.contextvars.bound_contextvars(request_id=secrets.token_hex(16)):
                try:
                    answer = perform(operation, given, caller=caller())
                    result, outcome = _answer_result(answer, is_structured=is_structured), "answered"
                except Exception as error:
                    problem = report_problem(error)
                    result, outcome = _error_result(problem), problem.code
                logger.info("call_finished", tool=operation.agent_tool, outcome=outcome)
            CALLS.labels(operation.agent_tool, outcome).inc()
            CALL_SECONDS.labels(operation.agent_tool).observe(time.perf_counter() - began)
            return result

        try:
            return await self.run(work)
        except Busy as refusal:
            return _error_result(report_problem(refusal))


def perform(operation: Operation, given: Mapping[str, Any], *, caller: Caller) -> Any:
    """Run the operation; a conversation may be named by number, id or session."""
    # Check the permission before any argument is looked up.
    operation.require(caller)
    fields = operation.params.model_fields
    schemas = fields_of(operation.params)
    # Against the schema, models send null for omitted arguments, and numbers as strings.
    arguments = {
        name: _resolve_conversations(schemas.get(name, {}), value, caller)
        for name, value in given.items()
        if value is not None or name not in fields or fields[name].is_required()
    }
    return operation.perform(caller, arguments, in_text=arguments).result


def report_problem(error: Exception) -> Problem:
    """Convert an error to a problem; log an unexpected one."""
    problem = problem_of(error)
    if problem is INTERNAL:
        logger.error("call_failed", exc_info=error)
    return problem


def _resolve_conversations(schema: Schema, value: Any, caller: Caller) -> Any:
    if is_conversation(schema) and isinstance(value, str):
        return conversation_named(value, scope=caller.scope)
    if "items" in schema and isinstance(value, list):
        return [_resolve_conversations(schema["items"], each, caller) for each in value]
    return value


def _answer_result(result: Any, *, is_structured: bool) -> CallToolResult:
    # A lone surrogate is shown as its escape in the text, and as a question mark in the structured content.
    text = text_of(result).encode(errors="backslashreplace").decode()
    answer = CallToolResult(content=[TextContent(type="text", text=text)])
    if is_structured:
        written = as_bytes(result)
        structured = json.loads(written)
        answer.structured_content = without_surrogates(structured) if may_hold_surrogates(written) else structured
    return answer


def _error_result(problem: Problem) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=as_bytes(problem.as_json()).decode())], is_error=True)
