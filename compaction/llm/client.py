"""Call a language model over HTTP, with retries, within a deadline.

A call is bounded as a whole, from looking the name up to the last byte: a server that accepts and says nothing, or
sends a byte now and then, blocks no longer than one that is not there. Transient failures are retried, with a growing
backoff.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import httpx2
import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential_jitter

from compaction.llm.leaks import Secrets
from compaction.llm.protocols import failure_of, reply_of, request_of
from compaction.llm.types import (
    BadAnswer,
    CallOutcome,
    Endpoint,
    HttpRequest,
    Leaked,
    ModelFailed,
    Prompt,
    Reply,
    Unreachable,
    Usage,
)
from compaction.summarizing.extractive.clean_text import estimate_tokens

logger = structlog.get_logger(__name__)

# No summary is a hundredth of this.
LONGEST_ANSWER = 4_000_000

_BACKOFF = wait_exponential_jitter(multiplier=0.5, max=20.0, jitter=0.5)


@dataclass(frozen=True)
class ModelClient:
    """Speaks to one endpoint.

    Every HTTP call is announced by `before_call`, which forbids it by raising, and reported to `after_call` with its
    outcome and what it cost. An answer that holds one of the `secrets` is a failure. `headers` are sent with each call.
    """

    endpoint: Endpoint
    before_call: Callable[[], None] = lambda: None
    after_call: Callable[[CallOutcome, Usage], None] = lambda outcome, usage: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    time_of_day: Callable[[], float] = time.time
    secrets: Secrets = field(default_factory=Secrets)
    headers: Mapping[str, str] = field(default_factory=dict)

    def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Reply:
        """The reply to a prompt, before the deadline; ModelFailed if there is none.

        Without a deadline its attempts and their timeouts limit it. It waits for nothing that would come after the
        deadline, and makes no call then.
        """
        endpoint = self.endpoint
        until = self.clock() + endpoint.attempts * endpoint.timeout_seconds
        until = until if deadline is None else min(deadline, until)

        def is_enough(state: RetryCallState) -> bool:
            return state.attempt_number >= endpoint.attempts or self.clock() + state.upcoming_sleep >= until

        may_pass = retry_if_exception(lambda failed: isinstance(failed, ModelFailed) and failed.is_transient)
        attempts = Retrying(retry=may_pass, stop=is_enough, wait=_pause, sleep=self.sleep, reraise=True)
        return attempts(self._attempt, prompt, until)

    def _attempt(self, prompt: Prompt, until: float) -> Reply:
        """One call, announced and reported."""
        seconds = min(self.endpoint.timeout_seconds, until - self.clock())
        if seconds <= 0:
            raise Unreachable("there is no time left to ask")
        self.before_call()
        try:
            reply = self._ask(prompt, seconds)
        except ModelFailed as failed:
            self.after_call(CallOutcome(failed.reason), failed.usage)
            raise
        self.after_call(CallOutcome.ANSWERED, reply.usage)
        return reply

    def _ask(self, prompt: Prompt, seconds: float) -> Reply:
        request = request_of(self.endpoint, prompt)
        request = replace(request, headers={**self.headers, **request.headers})
        answer = _send(request, seconds, Usage(_tokens_of(prompt)))
        if isinstance(answer, ModelFailed):
            # Raised here and not where it happened: a traceback may be printed with its locals, and there is the key.
            raise answer
        failure = failure_of(
            status=answer.status_code, body=answer.content, headers=answer.headers, now=self.time_of_day()
        )
        if failure is not None:
            raise failure
        reply = reply_of(self.endpoint, answer.content)
        # An estimate where the vendor does not say what it cost.
        tokens_in, tokens_out = reply.usage.tokens_in, reply.usage.tokens_out
        usage = Usage(tokens_in or _tokens_of(prompt), tokens_out or round(estimate_tokens(reply.text)))
        reply = replace(reply, usage=usage)
        self._require_no_secret(reply, prompt)
        return reply

    def _require_no_secret(self, reply: Reply, prompt: Prompt) -> None:
        """Raise Leaked for a reply with a secret; the log names the setting only."""
        known = prompt.system + prompt.user
        # The model's name is the server's own words, too, and is stored with the text.
        for text in (reply.text, reply.model):
            setting = self.secrets.leaked_in(text, known=known)
            if setting is not None:
                logger.error("model_leaked_a_secret", model=self.endpoint.name, setting=setting)
                raise Leaked(f"the answer holds the value of {setting}", usage=reply.usage)


def _tokens_of(prompt: Prompt) -> int:
    return round(estimate_tokens(prompt.system) + estimate_tokens(prompt.user))


def _pause(state: RetryCallState) -> float:
    """A growing pause with jitter, so that rejected workers do not return together."""
    failed = state.outcome.exception() if state.outcome is not None else None
    wanted = failed.retry_after if isinstance(failed, ModelFailed) else None
    return _BACKOFF(state) + (wanted or 0.0)


def _send(request: HttpRequest, seconds: float, cost: Usage) -> httpx2.Response | ModelFailed:
    """The complete answer within the given seconds, or why there is none.

    On an event loop of its own, because only there can a call be broken off anywhere: the timeouts of a blocking
    client are for one read each, and a head sent byte by byte never runs into them.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_exchange(request, seconds, cost))
    finally:
        # Not the loop's own runner: it would wait here for a look-up of a name that hangs.
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _exchange(request: HttpRequest, seconds: float, cost: Usage) -> httpx2.Response | ModelFailed:
    try:
        async with asyncio.timeout(seconds):
            return await _answer(request)
    except TimeoutError:
        # The vendor may well count what it has read by now.
        return Unreachable("no complete answer in time", usage=cost)
    except httpx2.ConnectError:
        return Unreachable("no connection")
    except httpx2.TransportError:
        return Unreachable("the connection broke")
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError):
        return BadAnswer("the answer is not valid HTTP")


async def _answer(request: HttpRequest) -> httpx2.Response | ModelFailed:
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
            if len(body) > LONGEST_ANSWER:
                return BadAnswer("the answer is far too long")
        return httpx2.Response(response.status_code, headers=response.headers, content=bytes(body))


@cache
def _certificates() -> ssl.SSLContext:
    """The trusted certificates, loaded once a process."""
    return httpx2.create_ssl_context()
