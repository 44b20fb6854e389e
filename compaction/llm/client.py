"""Call a language model over HTTP, with retries, within a deadline.

The whole time of a call is limited (see `transport.py`). Transient failures are retried, with a growing backoff.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential_jitter

from compaction.llm.leaks import leaked_in
from compaction.llm.protocols import reply_of, request_of
from compaction.llm.transport import send
from compaction.llm.types import (
    CallOutcome,
    Endpoint,
    Leaked,
    ModelFailed,
    Prompt,
    Reply,
    TemperatureRefused,
    Unreachable,
    Usage,
)
from compaction.summarizing.extractive.clean_text import estimate_tokens

logger = structlog.get_logger(__name__)

_BACKOFF = wait_exponential_jitter(multiplier=0.5, max=20.0, jitter=0.5)


@dataclass(frozen=True)
class ModelClient:
    """The client of one endpoint.

    `before_call` is called before every HTTP call, and may forbid it by raising. `after_call` is called after it, with
    the outcome and the usage. An answer that contains one of the `secrets` (values by setting) is a failure. A prompt's
    temperature is sent while `takes_temperature` returns true. If the model refuses the temperature, the call is
    repeated without one, and `on_temperature_refused` is called. `headers` are sent with each call.
    """

    endpoint: Endpoint
    before_call: Callable[[], None] = lambda: None
    after_call: Callable[[CallOutcome, Usage], None] = lambda outcome, usage: None
    takes_temperature: Callable[[], bool] = lambda: True
    on_temperature_refused: Callable[[], None] = lambda: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Reply:
        """Return the reply to a prompt; raises ModelFailed if there is none in time.

        The time limit is the deadline, or the endpoint's attempts times its timeout if that is less. A retry that could
        only begin after the limit is not made.
        """
        endpoint = self.endpoint
        until = self.clock() + endpoint.attempts * endpoint.timeout_seconds
        until = until if deadline is None else min(deadline, until)

        def is_enough(state: RetryCallState) -> bool:
            return state.attempt_number >= endpoint.attempts or self.clock() + state.upcoming_sleep >= until

        may_pass = retry_if_exception(lambda failed: isinstance(failed, ModelFailed) and failed.is_transient)
        attempts = Retrying(retry=may_pass, stop=is_enough, wait=_pause, sleep=self.sleep, reraise=True)
        without = replace(prompt, temperature=None)
        if prompt.temperature is None or not self.takes_temperature():
            return attempts(self._attempt, without, until)
        try:
            return attempts(self._attempt, prompt, until)
        except TemperatureRefused:
            pass
        # The temperature was the cause only if the same prompt is answered without it.
        reply = attempts(self._attempt, without, until)
        self.on_temperature_refused()
        return reply

    def _attempt(self, prompt: Prompt, until: float) -> Reply:
        """Make one HTTP call, between `before_call` and `after_call`."""
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
        reply = reply_of(self.endpoint, send(request, seconds, cost=Usage(_tokens_of(prompt))))
        # The usage is estimated if the vendor reports none.
        tokens_in, tokens_out = reply.usage.tokens_in, reply.usage.tokens_out
        usage = Usage(tokens_in or _tokens_of(prompt), tokens_out or round(estimate_tokens(reply.text)))
        reply = replace(reply, usage=usage)
        self._require_no_secret(reply, prompt)
        return reply

    def _require_no_secret(self, reply: Reply, prompt: Prompt) -> None:
        """Raise Leaked if the reply contains a secret; the log names the setting only."""
        known = prompt.system + prompt.user
        # The model's name comes from the server, too, and is stored with the text.
        for text in (reply.text, reply.model):
            setting = leaked_in(text, self.secrets, known=known)
            if setting is not None:
                logger.error("model_leaked_a_secret", model=self.endpoint.name, setting=setting)
                raise Leaked(f"the answer holds the value of {setting}", usage=reply.usage)


def _tokens_of(prompt: Prompt) -> int:
    return round(estimate_tokens(prompt.system) + estimate_tokens(prompt.user))


def _pause(state: RetryCallState) -> float:
    """Return the seconds before a retry: exponential backoff, and any Retry-After."""
    failed = state.outcome.exception() if state.outcome is not None else None
    wanted = failed.retry_after if isinstance(failed, ModelFailed) else None
    return _BACKOFF(state) + (wanted or 0.0)
