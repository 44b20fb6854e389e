"""Assemble mode: shorten requests that exceed the model's window.

docs/gateway-assemble.md describes the result; `window_assembler.py` has the steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import structlog

from compaction.engine import CompactionEngine
from conversations.scope import Scope
from lcmsite.access.keys import caller_of_hash
from lcmsite.connections import closing_connections
from lcmsite.gateway.lookups.offering import with_tools
from lcmsite.gateway.recording.exchange import Exchange
from lcmsite.gateway.recording.recorder import Recorded, Recorder, bounded_transaction
from lcmsite.gateway.surfaces import Task
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.stored_memory import COMPACTION_SECONDS, StoredMemory
from lcmsite.gateway.window.types import Assembled
from lcmsite.gateway.window.window_assembler import WindowAssembler

logger = structlog.get_logger(__name__)

# The part (1/n) of the window that is reserved for lookups if LCM's tools are offered.
_LOOKUPS_PART = 4
# Timeout for shortening a request, which is then forwarded unchanged.
LONGEST_SECONDS = COMPACTION_SECONDS + 10.0
# A separate pool, so that threads that hang here block no other work.
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="assemble")


def assemble_request(
    scope: Scope,
    exchange: Exchange,
    conversation_id: int,
    seqs: Mapping[int, int],
    *,
    is_trial: bool,
    with_lookups: bool,
) -> Assembled:
    """Shorten a request that exceeds its window; `seqs`: by index in its list.

    The window is the conversation's `model_token_budget`, the same that compaction uses. A trial reports what would be
    done, and stores nothing. `with_lookups` offers LCM's tools, if the request can have them. Raises NotFound.
    """
    engine = CompactionEngine.from_settings(scope)
    with bounded_transaction():
        conversation = scope.conversation(conversation_id)
    window = engine.policy.overridden(conversation.overrides).model_token_budget
    memory, counter = StoredMemory(conversation, engine), RequestCounter(engine.store.tokens)
    offered_body = with_tools(exchange.surface, exchange.body) if with_lookups else None
    reserved_tokens = window // _LOOKUPS_PART if offered_body else 0
    assembled = WindowAssembler(conversation_id, memory, counter, window, is_trial).assemble(
        surface=exchange.surface,
        body=exchange.body,
        seqs=[seqs.get(index) for index in range(max(seqs, default=-1) + 1)],
        offered_body=offered_body,
        reserved_tokens=reserved_tokens,
    )
    if assembled.shorter is not None:
        logger.info(
            "gateway_assembled",
            conversation_id=conversation_id,
            is_trial=is_trial,
            window=window,
            tokens_in=assembled.tokens_in,
            tokens_out=assembled.tokens_out,
            left_out=assembled.shorter.left_out,
            results_shortened=assembled.shorter.results_shortened,
            summaries=len(assembled.summary_ids),
            is_new_cut=assembled.is_new_cut,
            is_over=assembled.is_over,
        )
    return replace(assembled, lookup_room=reserved_tokens)


async def assemble_recorded(
    exchange: Exchange, recorded: Recorded | None, *, is_trial: bool, with_lookups: bool
) -> Assembled | None:
    """Shorten a recorded request; None if that fails or does not apply."""
    if recorded is None or recorded.side or exchange.task is not Task.GENERATE:
        return None
    return await _run_in_thread(
        lambda scope: assemble_request(
            scope, exchange, recorded.conversation_id, recorded.seqs, is_trial=is_trial, with_lookups=with_lookups
        ),
        exchange,
    )


async def assemble_count_request(exchange: Exchange, *, with_lookups: bool) -> Assembled | None:
    """Shorten a token count request as the real one would be; None if that fails."""

    def assemble(scope: Scope) -> Assembled | None:
        with bounded_transaction():
            known = Recorder.from_settings(scope).find_seqs(exchange)
        if known is None:
            return None
        return assemble_request(scope, exchange, *known, is_trial=True, with_lookups=with_lookups)

    return await _run_in_thread(assemble, exchange)


async def _run_in_thread(assemble: Callable[[Scope], Assembled | None], exchange: Exchange) -> Assembled | None:
    def work() -> Assembled | None:
        return assemble(caller_of_hash(exchange.key_hash).scope)

    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            return await asyncio.get_running_loop().run_in_executor(_THREADS, closing_connections, work)
    except Exception as error:
        logger.warning("gateway_not_assembled", exchange=exchange.exchange_key, exc_info=error)
        return None


def header_values(assembled: Assembled, *, is_trial: bool) -> dict[str, object]:
    """Return the values of the answer's `x-lcm-...` headers."""
    if assembled.untouched is not None:
        status = f"recorded; window={assembled.untouched}"
    else:
        status = "recorded; window=would-assemble" if is_trial else "assembled"
        status += "; over=1" if assembled.is_over else ""
    return {
        "status": status,
        "window": assembled.window,
        "tokens-in": assembled.tokens_in,
        "tokens-out": assembled.tokens_out,
        "summaries": len(assembled.summary_ids),
    }
