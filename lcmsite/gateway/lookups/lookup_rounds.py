"""Run the model's calls of LCM's tools, so that the agent sees only one answer.

If the model also calls tools of the agent, the answer ends; results of LCM's tools go into the agent's next request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import httpx2
import structlog

from lcmsite.gateway.decoding import Decoder, decode_in_steps, decoder_for
from lcmsite.gateway.event_stream import EventStream, data_of
from lcmsite.gateway.forwarding import Header, Watcher, forward, headers_for_client
from lcmsite.gateway.lookups.calls_of_answers import calls_in, result_rows, sendable_rows
from lcmsite.gateway.lookups.offering import Lookups
from lcmsite.gateway.lookups.shown_answers import ShownAnswer, shown_answer
from lcmsite.gateway.surfaces import LIST_KEY, Surface
from lcmsite.gateway.surfaces_answer import MOST_BYTES, AnswerReader, ReadAnswer
from lcmsite.gateway.window.json_spans import members
from lcmsite.mcp.tool_list import READING
from lcmsite.server.incoming import Send

logger = structlog.get_logger(__name__)

MOST_ROUNDS = 6
# Stop reasons of answers that were cut off: a call in them may be incomplete.
_CUT_OFF = ("max_tokens", "length", "max_output_tokens", "model_context_window_exceeded")
_ENOUGH = "Enough was looked up for one answer: go on with what you have."


@dataclass
class LookupRounds:
    """Sends a request with LCM's tools, and repeats it with each round's results."""

    surface: Surface
    lookups: Lookups
    open_upstream: Callable[[bytes], AbstractAsyncContextManager[httpx2.Response]]
    send: Send
    own_headers: Callable[[], Awaitable[Iterable[Header]]]
    watcher: Watcher
    # The lookups, for the journal; None if nothing was looked up.
    journal_entry: dict[str, Any] | None = None
    rows: list[Any] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    # The upstream's first answer: the client gets its status and headers.
    first_response: httpx2.Response | None = None
    has_begun: bool = False

    async def send_answer(self, body: bytes) -> None:
        """Send one answer to the client. Raises httpx2.HTTPError if the upstream fails."""
        shown = shown_answer(self.surface, READING)
        while (found := await self._read_next_answer(body, shown)) is not None:
            calls = list(calls_in(self.surface, found.rows))
            own = [call for call in calls if call.name not in READING]
            is_cut_off = found.stop_reason in _CUT_OFF
            if len(own) == len(calls) or not found.is_complete or is_cut_off:
                await self._end(shown, found, is_only_hidden=bool(calls) and not own and not is_cut_off)
                return
            if not own and shown.rounds == MOST_ROUNDS:
                await self._end(shown, found, is_only_hidden=True)
                return
            rows = sendable_rows(self.surface, found.rows)
            await self.lookups.spend(rows)
            results = []
            for call in calls:
                if call.name in READING:
                    is_last = shown.rounds + 1 == MOST_ROUNDS
                    text = _ENOUGH if is_last else await self.lookups.run_call(call, call_count=len(calls) - len(own))
                    results.append((call, text))
            answers = result_rows(self.surface, results)
            if own:
                await self._end(shown, found, is_only_hidden=False, results=answers)
                return
            self.rows += [*rows, *answers]
            await self.lookups.spend(answers)
            body = await asyncio.to_thread(_with_rows, self.surface, body, [*rows, *answers])
            shown.start_round(found.tokens_out)

    async def _read_next_answer(self, body: bytes, shown: ShownAnswer) -> ReadAnswer | None:
        """Read the model's next answer, and send its visible part to the client.

        Returns None if the whole answer was forwarded unchanged, such as an error.
        """
        async with self.open_upstream(body) as response:
            is_good = 200 <= response.status_code < 300
            if shown.rounds and not is_good:
                raise httpx2.RemoteProtocolError(f"The upstream answered {response.status_code} within an answer.")
            try:
                decoder = decoder_for(response.headers.get("content-encoding", ""))
            except ValueError as wrong:
                if shown.rounds:
                    raise httpx2.DecodingError(str(wrong)) from wrong
                await forward(nullcontext(response), send=self.send, own_headers=self.own_headers, watcher=self.watcher)
                return None
            if self.first_response is None:
                self.first_response = response
            pieces = _decoded_chunks(response, decoder)
            if is_good and response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                found = await self._read_stream(pieces, shown)
            else:
                found = await self._read_whole(pieces, is_good=is_good)
            if found is None:
                await self._finish()
            return found

    async def _read_stream(self, pieces: AsyncIterator[bytes], shown: ShownAnswer) -> ReadAnswer | None:
        """Read a streamed answer, sending its visible events on as they come."""
        await self._begin()
        reader = AnswerReader(self.surface, is_stream=True)
        is_read = True
        events = EventStream()
        async for piece in pieces:
            is_read = is_read and _try_feed(reader, piece)
            await self._send(b"".join(_show_event(shown, each) for each in events.feed(piece)))
            if len(events.rest) > MOST_BYTES:
                await self._send(events.take_rest())
        rest = events.take_rest()
        if rest.strip():
            await self._send(_show_event(shown, rest))
        found = _try_finish(reader) if is_read else None
        if found is None:
            await self._send(shown.finish(is_only_hidden=False))
        return found

    async def _read_whole(self, pieces: AsyncIterator[bytes], *, is_good: bool) -> ReadAnswer | None:
        """Read a non-streamed answer; forward it and return None if it has no lookups."""
        whole = bytearray()
        is_read = is_good
        async for piece in pieces:
            whole += piece
            if len(whole) > MOST_BYTES:
                is_read = False
            if not is_read:
                # An answer that is too large, or an error, is forwarded as it comes.
                await self._send(bytes(whole))
                whole.clear()
        reader = AnswerReader(self.surface, is_stream=False)
        found = _try_finish(reader) if is_read and _try_feed(reader, bytes(whole)) else None
        if found is None or not (_has_lookups(found) or (self.bodies and found.is_complete)):
            await self._send(bytes(whole))
            return None
        self.bodies.append(json.loads(whole))
        return found

    async def _end(
        self, shown: ShownAnswer, found: ReadAnswer, *, is_only_hidden: bool, results: list[Any] | None = None
    ) -> None:
        if self.bodies:
            whole = shown.merge_bodies(self.bodies, is_only_hidden=is_only_hidden)
            visible = len(whole["output"]) if self.surface is Surface.RESPONSES else 1
            await self._send(json.dumps(whole).encode())
        else:
            await self._send(shown.finish(is_only_hidden=is_only_hidden))
            visible = shown.shown_count if self.surface is Surface.RESPONSES else 1
        if found.is_complete and not is_only_hidden and (self.rows or results):
            rows = [*self.rows, *sendable_rows(self.surface, found.rows)]
            self.journal_entry = {"visible": visible, "rows": rows, "results": results or []}
        if self.rows or results:
            logger.info("gateway_looked_up", surface=self.surface.value, rounds=shown.rounds)
        await self._finish()

    async def _begin(self) -> None:
        """Send the status and headers of the model's first answer, once."""
        if self.has_begun:
            return
        assert self.first_response is not None
        self.has_begun = True
        self.watcher.on_start(self.first_response)
        self.watcher.headers.pop("content-encoding", None)
        headers = [*headers_for_client(self.first_response, is_rewritten=True), *await self.own_headers()]
        await self.send({"type": "http.response.start", "status": self.first_response.status_code, "headers": headers})

    async def _send(self, data: bytes) -> None:
        await self._begin()
        if data:
            await self.send({"type": "http.response.body", "body": data, "more_body": True})
            self.watcher.on_chunk(data)

    async def _finish(self) -> None:
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})


async def _decoded_chunks(response: httpx2.Response, decoder: Decoder) -> AsyncIterator[bytes]:
    try:
        async for piece in response.aiter_raw():
            for data in decode_in_steps(decoder, piece):
                yield data
    except ValueError as wrong:
        raise httpx2.DecodingError(str(wrong)) from wrong


def _try_feed(reader: AnswerReader, piece: bytes) -> bool:
    """Feed a chunk to the reader; False if the answer is too large for it."""
    try:
        reader.feed(piece)
    except ValueError as error:
        logger.warning("gateway_answer_not_read", reason=type(error).__name__)
        return False
    return True


def _try_finish(reader: AnswerReader) -> ReadAnswer | None:
    """Return the reader's answer; None if it cannot be parsed."""
    try:
        return reader.finish()
    except Exception as error:
        logger.warning("gateway_answer_not_read", reason=type(error).__name__)
        return None


def _has_lookups(answer: ReadAnswer) -> bool:
    return any(call.name in READING for call in calls_in(answer.surface, answer.rows))


def _show_event(shown: ShownAnswer, raw: bytes) -> bytes:
    """Return what to send to the client now for an event."""
    data = data_of(raw)
    if data == b"[DONE]":
        shown.is_done = True
        return b""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return raw
    try:
        return shown.add_event(event, raw) if isinstance(event, dict) else raw
    except (KeyError, TypeError, ValueError, AttributeError):
        # An event of an unknown form is forwarded unchanged.
        return raw


def _with_rows(surface: Surface, body: bytes, rows: Iterable[Any]) -> bytes:
    """Append rows to the messages or items of a request body."""
    text = body.decode()
    end = members(text)[LIST_KEY[surface]].end - 1
    return f"{text[:end]}, {json.dumps(list(rows))[1:-1]}{text[end:]}".encode()
