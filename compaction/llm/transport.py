"""Send one HTTP request to a model, with a timeout for the whole exchange.

The timeout covers everything from the DNS lookup to the last byte. A server that accepts the connection and sends
nothing, or only a byte now and then, does not block longer than a server that cannot be reached.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from functools import cache

import httpx2

from compaction.llm.protocols import failure_of
from compaction.llm.types import BadAnswer, HttpRequest, ModelFailed, Unreachable, Usage

# Maximum number of bytes of a response: over a hundred times the longest summary.
LONGEST_ANSWER = 4_000_000


def send(request: HttpRequest, seconds: float, *, cost: Usage, longest: int = LONGEST_ANSWER) -> bytes:
    """Return the body of a response within the given seconds; raises ModelFailed.

    The call runs on its own event loop, where it can be cancelled at any point. A blocking client only has a timeout
    for each read, which a server that sends its headers byte by byte never exceeds.
    """
    loop = asyncio.new_event_loop()
    try:
        answer = loop.run_until_complete(_exchange(request, seconds, cost, longest))
    finally:
        # Not asyncio.run(), which would wait here for a DNS lookup that hangs.
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    if isinstance(answer, ModelFailed):
        # Raised here and not in `_answer`, where a traceback with local variables would show the key.
        raise answer
    failure = failure_of(status=answer.status_code, body=answer.content, headers=answer.headers, now=time.time())
    if failure is not None:
        raise failure
    return answer.content


async def _exchange(request: HttpRequest, seconds: float, cost: Usage, longest: int) -> httpx2.Response | ModelFailed:
    try:
        async with asyncio.timeout(seconds):
            return await _answer(request, longest)
    except TimeoutError:
        # The vendor may charge for the prompt.
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
        # A small compressed response could exceed the limit when it is decompressed.
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
    """Return the trusted certificates, loaded once per process."""
    return httpx2.create_ssl_context()
