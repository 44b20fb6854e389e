"""Configure the language models, and the order in which they are called.

Pure, except that a key in a file is read at each use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compaction.llm.types import Endpoint, Misconfigured, Protocol
from conversations.errors import Invalid
from conversations.policy import Policy, Secret, SecretFile, knob, read_secret
from conversations.types import Level

# The summarizer that needs no model. It always answers, so no summarizer after it would be called.
EXTRACTIVE = "extractive"
MODELS = tuple(protocol.value for protocol in Protocol)

_ANTHROPIC = "https://api.anthropic.com"
_HTTP = ("http", "https")
_HIGHEST_TEMPERATURE = 2.0


@dataclass(frozen=True)
class ModelsPolicy(Policy):
    """The settings of the language models: endpoints, timeouts, breaker, spend."""

    chat_url: str = knob(
        "", "A server that speaks chat completions: its base URL, such as https://host/v1.", schemes=_HTTP
    )
    chat_model: str = knob("", "The model at that server that writes summaries.")
    chat_key: str | SecretFile = knob("", "The API key for that server, if it needs one.", secret=True)
    chat_window_tokens: int = knob(128_000, "The context window of this model, in tokens.", low=1_000, high=100_000_000)
    chat_prices: str = knob(
        "", "The prices of a million input and output tokens of this model, such as 0.25/1.25; empty if unknown."
    )
    anthropic_url: str = knob(
        _ANTHROPIC, "A server that speaks the Anthropic messages protocol: its base URL.", schemes=_HTTP
    )
    anthropic_model: str = knob("", "The model at that server that writes summaries.")
    anthropic_key: str | SecretFile = knob("", "The API key for that server.", secret=True)
    # The context window of this model.
    anthropic_window_tokens: int = 200_000
    anthropic_prices: str = knob(
        "", "The prices of a million input and output tokens of this model, such as 3/15; empty if unknown."
    )
    model_timeout_seconds: int = knob(60, "Seconds that one call to a model may take.", low=1, high=3600)
    # The most attempts of one call to a model that does not answer.
    model_attempts: int = 3
    model_max_output_tokens: int = knob(
        4096, "Maximum output tokens of one call to a model, including its reasoning.", low=64, high=1_000_000
    )
    temperatures: str = knob(
        "0.2,0.1",
        "The temperatures for normal and for aggressive summaries; the word none sends no temperature. "
        "A model that refuses a temperature is called without one.",
    )
    # Calls to a model pause after this many failed ones in a row.
    breaker_failures: int = 5
    # How long calls pause, in seconds. Each failed probe doubles the pause, up to four times its first length.
    breaker_pause_seconds: int = 300
    # The window of the two spending limits, in seconds.
    spend_window_seconds: int = 600
    # Maximum number of calls to each model in one window; 0 for no limit. Further calls are refused until it ends.
    spend_max_calls: int = 1_000
    spend_max_tokens: int = knob(
        20_000_000,
        "Maximum number of input and output tokens of each model in ten minutes; 0 for no limit. Calls in progress end "
        "normally, and may exceed it.",
        low=0,
        high=1_000_000_000_000,
    )

    def url(self, name: str) -> str:
        """The base URL of the model of this name: `chat` or `anthropic`."""
        return str(getattr(self, f"{name}_url"))

    def model(self, name: str) -> str:
        """The vendor's name of this model."""
        return str(getattr(self, f"{name}_model"))

    def window_tokens(self, name: str) -> int:
        """The context window of this model, in tokens."""
        return int(getattr(self, f"{name}_window_tokens"))

    def prices(self, name: str) -> tuple[float, float] | None:
        """Return the prices of a million input and output tokens, or None if unset.

        Raises Misconfigured if the setting is not two prices.
        """
        given = str(getattr(self, f"{name}_prices"))
        if not given:
            return None
        try:
            price_in, price_out = (float(price) for price in given.split("/"))
        except ValueError:
            price_in = price_out = -1.0
        if not (0 <= price_in < math.inf and 0 <= price_out < math.inf):
            raise Misconfigured(f"{_setting(f'{name}_prices')}: {given[:80]!r} is not two prices, such as 0.25/1.25.")
        return price_in, price_out

    def temperature_by_level(self) -> dict[Level, float]:
        """Return the temperature by level, empty if none is sent; raises Misconfigured."""
        given = self.temperatures
        if given in ("", "none"):
            return {}
        try:
            normal, aggressive = (float(part) for part in given.split(","))
        except ValueError:
            normal = aggressive = -1.0
        if not (0 <= normal <= _HIGHEST_TEMPERATURE and 0 <= aggressive <= _HIGHEST_TEMPERATURE):
            raise Misconfigured(
                f"{_setting('temperatures')}: {given[:80]!r} is not two temperatures of 0 to 2, such as 0.2,0.1, or "
                "none."
            )
        return {Level.NORMAL: normal, Level.AGGRESSIVE: aggressive}

    def keys(self) -> dict[str, Secret]:
        """Return the keys by setting; the key in an unreadable file is empty."""
        given = {f"{name}_key": getattr(self, f"{name}_key") for name in MODELS}
        return {_setting(name): read_secret(key)[0] for name, key in given.items() if key}

    def missing(self, name: str) -> tuple[str, ...]:
        """Return the missing settings without which this model cannot be called."""
        lacking = [each for each in (f"{name}_url", f"{name}_model") if not getattr(self, each)]
        # A self-hosted server may need no key. The vendor's server needs one.
        if self.url(name).startswith(_ANTHROPIC) and not self.anthropic_key:
            lacking.append("anthropic_key")
        return tuple(_setting(each) for each in lacking)

    def endpoint(self, name: str) -> Endpoint:
        """Build a model's endpoint; raises Misconfigured, which names the setting."""
        missing = self.missing(name)
        if missing:
            raise Misconfigured(_missing_text(name, missing))
        key, wrong = read_secret(getattr(self, f"{name}_key"))
        if wrong:
            raise Misconfigured(f"{_setting(f'{name}_key_file')}: {wrong}.")
        try:
            return Endpoint(
                name=name,
                protocol=Protocol(name),
                base_url=self.url(name),
                model=self.model(name),
                key=key,
                timeout_seconds=self.model_timeout_seconds,
                max_output_tokens=self.model_max_output_tokens,
                attempts=self.model_attempts,
            )
        except ValueError as refusal:
            wrong = str(refusal)
        # Raised outside of the handler: the other error, if chained, would keep a traceback with the key.
        raise Misconfigured(wrong)


def cost_of(tokens_in: int, tokens_out: int, *, prices: tuple[float, float] | None) -> float | None:
    """Return the cost of these input and output tokens; None without prices."""
    return None if prices is None else round((tokens_in * prices[0] + tokens_out * prices[1]) / 1_000_000, 6)


def chain_of(text: str) -> tuple[str, ...]:
    """Parse a chain of summarizers such as `chat,anthropic,extractive`.

    Raises Invalid for an unknown or repeated name, and for a name after `extractive`, which would never be called.
    """
    names = tuple(name.strip() for name in text.split(","))
    for place, name in enumerate(names):
        if name not in (EXTRACTIVE, *MODELS):
            known = ", ".join((EXTRACTIVE, *MODELS))
            raise Invalid(f"summarizer: {name[:80]!r} is unknown; give one or several of {known}, separated by commas.")
        if name in names[:place]:
            raise Invalid(f"summarizer: {name!r} is named twice; name it once.")
        if EXTRACTIVE in names[:place]:
            raise Invalid(f"summarizer: {name!r} would never be called, because {EXTRACTIVE!r} before it never fails.")
    return names


def require_configured_chain(text: str) -> None:
    """Raise Invalid for a wrong chain, or one with an unconfigured model."""
    models = [name for name in chain_of(text) if name != EXTRACTIVE]
    if models:
        policy = ModelsPolicy.from_settings()
        for name in models:
            if missing := policy.missing(name):
                raise Invalid(f"summarizer: {_missing_text(name, missing)}")


def _setting(field: str) -> str:
    return f"LCM_{field.upper()}"


def _missing_text(name: str, missing: tuple[str, ...]) -> str:
    return f"{name!r} is not configured: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set."
