"""Answer the model's calls of LCM's tools, so that the agent sees one answer.

A call of the agent's own tools ends the answer; results of LCM's tools beside it are added to the agent's next request.
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

from lcmsite.gateway.decoding import Decoder, decoder, steps
from lcmsite.gateway.event_stream import EventStream, data_of
from lcmsite.gateway.forwarding import Header, Watched, forward, headers_for_client
from lcmsite.gateway.lookups.calls_of_answers import calls_in, results_of, sendable
from lcmsite.gateway.lookups.offering import OFFERED, Lookups
from lcmsite.gateway.lookups.shown_answers import ShownAnswer, shown_answer
from lcmsite.gateway.surfaces import LIST, Surface
from lcmsite.gateway.surfaces_answer import MOST_BYTES, AnswerReader, ReadAnswer
from lcmsite.gateway.window.json_spans import members
from lcmsite.server.incoming import Send

logger = structlog.get_logger(__name__)

MOST_ROUNDS = 6
# Stop reasons of answers that were cut off: a call in them may be incomplete.
_CUT_OFF = ("max_tokens", "length", "max_output_tokens", "model_context_window_exceeded")
_ENOUGH = "Enough was looked up for one answer: go on with what you have."


@dataclass
class LookupRounds:
    """Sends a request with LCM's tools, and again after each round of lookups."""

    surface: Surface
    lookups: Lookups
    ask: Callable[[bytes], AbstractAsyncContextManager[httpx2.Response]]
    send: Send
    own_headers: Callable[[], Awaitable[Iterable[Header]]]
    watched: Watched
    # The lookups, for the journal; None if nothing was looked up.
    record: dict[str, Any] | None = None
    rows: list[Any] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    # The upstream's first answer: the client gets its status and headers.
    first: httpx2.Response | None = None
    has_begun: bool = False

    async def answer(self, body: bytes) -> None:
        """Send one answer to the client. Raises httpx2.HTTPError if the upstream fails."""
        shown = shown_answer(self.surface, OFFERED)
        while (found := await self._next_answer(body, shown)) is not None:
            calls = list(calls_in(self.surface, found.rows))
            own = [call for call in calls if call.name not in OFFERED]
            is_cut_off = found.stop_reason in _CUT_OFF
            if len(own) == len(calls) or not found.is_complete or is_cut_off:
                await self._end(shown, found, is_only_hidden=bool(calls) and not own and not is_cut_off)
                return
            if not own and shown.rounds == MOST_ROUNDS:
                await self._end(shown, found, is_only_hidden=True)
                return
            rows = sendable(self.surface, found.rows)
            await self.lookups.spend(rows)
            results = []
            for call in calls:
                if call.name in OFFERED:
                    is_last = shown.rounds + 1 == MOST_ROUNDS
                    text = _ENOUGH if is_last else await self.lookups.result(call, share=len(calls) - len(own))
                    results.append((call, text))
            answers = results_of(self.surface, results)
            if own:
                await self._end(shown, found, is_only_hidden=False, results=answers)
                return
            self.rows += [*rows, *answers]
            await self.lookups.spend(answers)
            body = await asyncio.to_thread(_with_rows, self.surface, body, [*rows, *answers])
            shown.go_on(found.tokens_out)

    async def _next_answer(self, body: bytes, shown: ShownAnswer) -> ReadAnswer | None:
        """Read the model's next answer, and send what is visible of it to the client.

        Returns None if the whole answer was forwarded unchanged, such as an error.
        """
        async with self.ask(body) as response:
            is_good = 200 <= response.status_code < 300
            if shown.rounds and not is_good:
                raise httpx2.RemoteProtocolError(f"The upstream answered {response.status_code} within an answer.")
            try:
                unpacking = decoder(response.headers.get("content-encoding", ""))
            except ValueError as wrong:
                if shown.rounds:
                    raise httpx2.DecodingError(str(wrong)) from wrong
                await forward(nullcontext(response), send=self.send, own_headers=self.own_headers, watched=self.watched)
                return None
            if self.first is None:
                self.first = response
            pieces = _unpacked(response, unpacking)
            if is_good and response.headers.get("content-type", "").startswith("text/event-stream"):
                found = await self._from_stream(pieces, shown)
            else:
                found = await self._from_body(pieces, is_good=is_good)
            if found is None:
                await self._finish()
            return found

    async def _from_stream(self, pieces: AsyncIterator[bytes], shown: ShownAnswer) -> ReadAnswer | None:
        """Read a streamed answer, sending its visible events on as they come."""
        await self._begin()
        reader = AnswerReader(self.surface, is_stream=True)
        is_read = True
        events = EventStream()
        async for piece in pieces:
            is_read = is_read and _is_fed(reader, piece)
            await self._send(b"".join(_shown(shown, each) for each in events.ended(piece)))
            if len(events.rest) > MOST_BYTES:
                await self._send(events.take_rest())
        rest = events.take_rest()
        if rest.strip():
            await self._send(_shown(shown, rest))
        found = _finished(reader) if is_read else None
        if found is None:
            await self._send(shown.finish(is_only_hidden=False))
        return found

    async def _from_body(self, pieces: AsyncIterator[bytes], *, is_good: bool) -> ReadAnswer | None:
        """Read a non-streamed answer; forward it and return None if it has no lookups."""
        whole = bytearray()
        is_read = is_good
        async for piece in pieces:
            whole += piece
            if len(whole) > MOST_BYTES:
                is_read = False
            if not is_read:
                # Too large, or an error: forwarded as it comes.
                await self._send(bytes(whole))
                whole.clear()
        reader = AnswerReader(self.surface, is_stream=False)
        found = _finished(reader) if is_read and _is_fed(reader, bytes(whole)) else None
        if found is None or not (self.bodies or _has_hidden(found)):
            await self._send(bytes(whole))
            return None
        self.bodies.append(json.loads(whole))
        return found

    async def _end(
        self, shown: ShownAnswer, found: ReadAnswer, *, is_only_hidden: bool, results: list[Any] | None = None
    ) -> None:
        if self.bodies:
            whole = shown.whole(self.bodies, is_only_hidden=is_only_hidden)
            visible = len(whole["output"]) if self.surface is Surface.RESPONSES else 1
            await self._send(json.dumps(whole).encode())
        else:
            await self._send(shown.finish(is_only_hidden=is_only_hidden))
            visible = shown.shown_count if self.surface is Surface.RESPONSES else 1
        if found.is_complete and not is_only_hidden and (self.rows or results):
            rows = [*self.rows, *sendable(self.surface, found.rows)]
            self.record = {"visible": visible, "rows": rows, "results": results or []}
        if self.rows or results:
            logger.info("gateway_looked_up", surface=self.surface.value, rounds=shown.rounds)
        await self._finish()

    async def _begin(self) -> None:
        """Send the status and headers of the model's first answer, once."""
        if self.has_begun:
            return
        assert self.first is not None
        self.has_begun = True
        self.watched.begin(self.first)
        self.watched.headers.pop("content-encoding", None)
        headers = [*headers_for_client(self.first, is_rewritten=True), *await self.own_headers()]
        await self.send({"type": "http.response.start", "status": self.first.status_code, "headers": headers})

    async def _send(self, data: bytes) -> None:
        await self._begin()
        if data:
            await self.send({"type": "http.response.body", "body": data, "more_body": True})
            self.watched.taken(data)

    async def _finish(self) -> None:
        self.watched.is_whole = True
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})


async def _unpacked(response: httpx2.Response, unpacking: Decoder) -> AsyncIterator[bytes]:
    try:
        async for piece in response.aiter_raw():
            for data in steps(unpacking, piece):
                yield data
    except ValueError as wrong:
        raise httpx2.DecodingError(str(wrong)) from wrong


def _is_fed(reader: AnswerReader, piece: bytes) -> bool:
    """Feed a chunk to the reader; False if the answer is too large for it."""
    try:
        reader.feed(piece)
    except ValueError as error:
        logger.warning("gateway_answer_not_read", reason=type(error).__name__)
        return False
    return True


def _finished(reader: AnswerReader) -> ReadAnswer | None:
    """Return the reader's answer; None if it cannot be parsed."""
    try:
        return reader.finish()
    except Exception as error:
        logger.warning("gateway_answer_not_read", reason=type(error).__name__)
        return None


def _has_hidden(answer: ReadAnswer) -> bool:
    return any(call.name in OFFERED for call in calls_in(answer.surface, answer.rows))


def _shown(shown: ShownAnswer, raw: bytes) -> bytes:
    """Return what to send to the client now for an event."""
    data = data_of(raw)
    if data == b"[DONE]":
        shown.is_done = True
        return b""
    try:
        event = json.loads(data)
    except ValueError:
        return raw
    try:
        return shown.take(event, raw) if isinstance(event, dict) else raw
    except (KeyError, TypeError, ValueError, AttributeError):
        # An event of an unknown form: forwarded unchanged.
        return raw


def _with_rows(surface: Surface, body: bytes, rows: Iterable[Any]) -> bytes:
    """Append rows to the messages or items of a request body."""
    text = body.decode()
    end = members(text)[LIST[surface]].end - 1
    return f"{text[:end]}, {json.dumps(list(rows))[1:-1]}{text[end:]}".encode()
