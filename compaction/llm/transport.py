"""Send one HTTP request to a model, within so many seconds.

A call is bounded as a whole, from looking the name up to the last byte: a server that accepts and says nothing, or
sends a byte now and then, blocks no longer than one that is not there.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import cache

import httpx2

from compaction.llm.types import BadAnswer, HttpRequest, ModelFailed, Unreachable, Usage

# No summary is a hundredth of this.
LONGEST_ANSWER = 4_000_000


def send(
    request: HttpRequest, seconds: float, *, cost: Usage, longest: int = LONGEST_ANSWER
) -> httpx2.Response | ModelFailed:
    """The complete answer within the given seconds, or why there is none.

    On an event loop of its own, because only there can a call be broken off anywhere: the timeouts of a blocking
    client are for one read each, and a head sent byte by byte never runs into them.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_exchange(request, seconds, cost, longest))
    finally:
        # Not the loop's own runner: it would wait here for a look-up of a name that hangs.
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _exchange(request: HttpRequest, seconds: float, cost: Usage, longest: int) -> httpx2.Response | ModelFailed:
    try:
        async with asyncio.timeout(seconds):
            return await _answer(request, longest)
    except TimeoutError:
        # The vendor may well count what it has read by now.
        return Unreachable("no complete answer in time", usage=cost)
    except httpx2.ConnectError:
        return Unreachable("no connection")
    except httpx2.TransportError:
        return Unreachable("the connection broke")
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError):
        return BadAnswer("the answer is not valid HTTP")


async def _answer(request: HttpRequest, longest: int) -> httpx2.Response | ModelFailed:
    headers = {
        **request.headers,
        "accept": "application/json",
        # A small packed answer can be a large one unpacked, and the bound is for what is held.
        "accept-encoding": "identity",
        "user-agent": "lcm",
    }
    # Proxies, and keys in ~/.netrc, are not taken from the environment: a prompt goes to its endpoint and nowhere else.
    client = httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=None, verify=_certificates())
    async with client, client.stream("POST", request.url, headers=headers, content=request.body) as response:
        if response.headers.get("content-encoding", "identity") != "identity":
            return BadAnswer("the answer is compressed, against the request")
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > longest:
                return BadAnswer("the answer is far too long")
        return httpx2.Response(response.status_code, headers=response.headers, content=bytes(body))


@cache
def _certificates() -> ssl.SSLContext:
    """The trusted certificates, loaded once a process."""
    return httpx2.create_ssl_context()
