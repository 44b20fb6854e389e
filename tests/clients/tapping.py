"""A wire that is listened to: a relay that passes HTTP on byte for byte, and keeps what went by.

    with Vendor(...) as vendor, Tap(vendor.url) as behind, Tap(gateway.url) as before:
        ...   # the agent asks `before`, which asks the gateway, whose upstream is `behind`
    assert altered(before.passed, behind.passed) == []

It reads no JSON and knows no LCM: what it keeps is what both sides of it got.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.loopback import Loopback, LoopbackHandler

_OF_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@dataclass
class Passed:
    """One request, and as much of its answer as came."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    status: int | None = None
    answer: bytes = field(default=b"", repr=False)
    is_whole: bool = False


class Tap(Loopback):
    """Passes on to `target` from `with` to the end of the block."""

    def __init__(self, target: str) -> None:
        super().__init__(_Handler)
        self.aim(target)
        self.passed: list[Passed] = []

    def aim(self, target: str) -> None:
        """Pass on to this address from now on."""
        parts = urlsplit(target)
        self.host, self.to_port = str(parts.hostname), int(parts.port or 80)


def altered(before: Iterable[Passed], behind: Iterable[Passed]) -> list[Passed]:
    """What was not passed on as it came: requests, or answers of which one is not the other's beginning."""
    waiting = list(behind)
    found = []
    # One that broke off and was sent again has the same beginning.
    for asked in sorted(before, key=lambda each: not each.is_whole):
        same = (each for each in waiting if _is_same(asked, each))
        twin = next(same, None)
        if twin is None:
            found.append(asked)
        else:
            waiting.remove(twin)
    return [*found, *waiting]


def _is_same(one: Passed, other: Passed) -> bool:
    """Who leaves in the middle of an answer has only its beginning."""
    is_request = (one.method, one.path, one.body) == (other.method, other.path, other.body)
    whole = one.is_whole and other.is_whole
    is_answer = one.answer == other.answer if whole else other.answer.startswith(one.answer)
    return is_request and one.status == other.status and is_answer


class _Handler(LoopbackHandler):
    def take(self) -> None:
        passed = Passed(self.command, self.path, tuple(self.headers.items()), self.read_body())
        self.owner.passed.append(passed)
        onward = http.client.HTTPConnection(self.owner.host, self.owner.to_port, timeout=600)
        try:
            self._ask(onward, passed)
            self._answer(onward.getresponse(), passed)
        except (OSError, http.client.HTTPException):
            # As it breaks on one side, it breaks on the other.
            with suppress(OSError):
                self.reset()
        finally:
            onward.close()

    def _ask(self, onward: http.client.HTTPConnection, passed: Passed) -> None:
        onward.putrequest(passed.method, passed.path, skip_host=True, skip_accept_encoding=True)
        onward.putheader("Host", f"{self.owner.host}:{self.owner.to_port}")
        for name, value in passed.headers:
            if name.lower() != "host" and name.lower() not in _OF_CONNECTION:
                onward.putheader(name, value)
        onward.putheader("Content-Length", str(len(passed.body)))
        onward.endheaders(passed.body)

    def _answer(self, response: http.client.HTTPResponse, passed: Passed) -> None:
        passed.status = response.status
        length = response.getheader("content-length")
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _OF_CONNECTION:
                self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", length)
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := response.read1(65536):
            passed.answer += piece
            if length is None:
                self.send_chunk(piece)
            else:
                self.wfile.write(piece)
        if length is None and self.command != "HEAD":
            self.end_chunks()
        passed.is_whole = True
