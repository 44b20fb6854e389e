"""A proxy that does nothing but forward. `python -m tests.benchmarks.bare_proxy PORT UPSTREAM`."""

from __future__ import annotations

import sys
from typing import Any

import httpx2
import uvicorn

HOP = (b"connection", b"transfer-encoding", b"host", b"content-length", b"date", b"server")


def application(upstream: str) -> Any:
    client = httpx2.AsyncClient(trust_env=False, timeout=600, limits=httpx2.Limits(max_connections=None))

    async def forward(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        headers = [(name, value) for name, value in scope["headers"] if name not in HOP]
        request = httpx2.Request(scope["method"], upstream + scope["path"], headers=headers, content=body)
        response = await client.send(request, stream=True)
        kept = [(name, value) for name, value in response.headers.raw if name.lower() not in HOP]
        await send({"type": "http.response.start", "status": response.status_code, "headers": kept})
        async for piece in response.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return forward


def main(port: str, upstream: str) -> None:
    uvicorn.run(application(upstream), host="127.0.0.1", port=int(port), lifespan="off", log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
