"""Which language models there are, and in which order they are called.

Pure but for the file that a key may be kept in, which is read each time, so that a new key is taken up at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from compaction.llm.types import Endpoint, Misconfigured, Protocol
from conversations.errors import Invalid
from conversations.policy import Policy, Secret, knob
from conversations.types import Level

# The summarizer that needs no model. It always answers, so no summarizer after it would be called.
EXTRACTIVE = "extractive"
MODELS = tuple(protocol.value for protocol in Protocol)

_ANTHROPIC = "https://api.anthropic.com"
_HTTP = ("http", "https")
_HIGHEST_TEMPERATURE = 2.0
# A key is a line. What is longer is the wrong file, and is not read to its end.
_LONGEST_KEY_FILE = 10_000


@dataclass(frozen=True)
class ModelsPolicy(Policy):
    """The settings of the language models: endpoints, timeouts, breaker, spend."""

    chat_url: str = knob(
        "", "A server that speaks chat completions: its base URL, such as https://host/v1.", schemes=_HTTP
    )
    chat_model: str = knob("", "The model that writes summaries there.")
    chat_key: str = knob("", "The key for that server, if it wants one.", secret=True)
    chat_key_file: str = knob("", "A file that holds this key, in place of LCM_CHAT_KEY.")
    chat_window_tokens: int = knob(128_000, "The tokens that this model takes.", low=1_000, high=100_000_000)
    chat_prices: str = knob(
        "", "What a million tokens cost there, read and written, as 0.25/1.25; empty if that is not known."
    )
    anthropic_url: str = knob(
        _ANTHROPIC, "A server that speaks the Anthropic messages protocol: its base URL.", schemes=_HTTP
    )
    anthropic_model: str = knob("", "The model that writes summaries there.")
    anthropic_key: str = knob("", "The key for that server.", secret=True)
    anthropic_key_file: str = knob("", "A file that holds this key, in place of LCM_ANTHROPIC_KEY.")
    # The tokens that this model takes.
    anthropic_window_tokens: int = 200_000
    anthropic_prices: str = knob(
        "", "What a million tokens cost there, read and written, as 3/15; empty if that is not known."
    )
    model_timeout_seconds: int = knob(60, "How long one call to a model may take.", low=1, high=3600)
    # The most attempts of one call to a model that does not answer.
    model_attempts: int = 3
    model_max_output_tokens: int = knob(
        4096, "The most tokens that a model may write; thinking counts for those that think.", low=64, high=1_000_000
    )
    temperatures: str = knob(
        "0.2,0.1",
        "The temperatures that a model is given for a normal and for an aggressive summary; none for no temperature. "
        "A model that refuses one is called without.",
    )
    # After so many failed calls in a row, calls to a model pause.
    breaker_failures: int = 5
    # How long calls pause, in seconds; after each failed probe twice as long, up to four times.
    breaker_pause_seconds: int = 300
    # The time that the two limits on spending are for.
    spend_window_seconds: int = 600
    # The most calls to each model in that time; when they are spent, calls stop until it is over. 0 for no limit.
    spend_max_calls: int = 1_000
    spend_max_tokens: int = knob(
        20_000_000,
        "The most tokens, read and written, of each model in that time; 0 for no limit. A call in progress ends "
        "normally, so its tokens come on top.",
        low=0,
        high=1_000_000_000_000,
    )

    def url(self, name: str) -> str:
        """The base URL of the model of this name: `chat` or `anthropic`."""
        return str(getattr(self, f"{name}_url"))

    def model(self, name: str) -> str:
        """What its vendor calls it."""
        return str(getattr(self, f"{name}_model"))

    def window_tokens(self, name: str) -> int:
        """The tokens that it takes."""
        return int(getattr(self, f"{name}_window_tokens"))

    def prices(self, name: str) -> tuple[float, float] | None:
        """The cost of a million tokens, read and written, if known; or Misconfigured."""
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
        """The temperature of each level that has one, or Misconfigured."""
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
        """The configured keys by setting, without files that cannot be read."""
        found = {}
        for name in MODELS:
            given, path = Secret(getattr(self, f"{name}_key")), getattr(self, f"{name}_key_file")
            if given:
                found[_setting(f"{name}_key")] = given
            if path:
                found[_setting(f"{name}_key_file")] = _read_key(path)[0]
        return found

    def missing(self, name: str) -> tuple[str, ...]:
        """The settings without which this model cannot be called."""
        lacking = [each for each in (f"{name}_url", f"{name}_model") if not getattr(self, each)]
        # A server of one's own may want no key. The vendor's does.
        if self.url(name).startswith(_ANTHROPIC) and not (self.anthropic_key or self.anthropic_key_file):
            lacking.append("anthropic_key")
        return tuple(_setting(each) for each in lacking)

    def endpoint(self, name: str) -> Endpoint:
        """The endpoint of this name; Misconfigured, with the setting, if not ready."""
        missing = self.missing(name)
        if missing:
            raise Misconfigured(_is_missing(name, missing))
        key_file = getattr(self, f"{name}_key_file")
        given = Secret(getattr(self, f"{name}_key"))
        key, wrong = _read_key(key_file) if key_file else (given, "")
        if key_file and given:
            wrong = f"{_setting(f'{name}_key')} is set too, and only one of the two may be"
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
        # Not raised in there: the error would carry along the one whose traceback has the key among its locals.
        raise Misconfigured(wrong)


def cost_of(tokens_in: int, tokens_out: int, *, prices: tuple[float, float] | None) -> float | None:
    """The cost of so many tokens, read and written; None without a price."""
    return None if prices is None else round((tokens_in * prices[0] + tokens_out * prices[1]) / 1_000_000, 6)


def chain_of(text: str) -> tuple[str, ...]:
    """The summarizers of a chain such as `chat,anthropic,extractive`, in order.

    Invalid if it names one that there is not, one twice, or one that would never be called.
    """
    names = tuple(name.strip() for name in text.split(","))
    for place, name in enumerate(names):
        if name not in (EXTRACTIVE, *MODELS):
            known = ", ".join((EXTRACTIVE, *MODELS))
            raise Invalid(f"summarizer: {name[:80]!r} is not one; they are {known}, one or several, with commas.")
        if name in names[:place]:
            raise Invalid(f"summarizer: {name!r} is named twice.")
        if EXTRACTIVE in names[:place]:
            raise Invalid(f"summarizer: {name!r} would never be called, for {EXTRACTIVE!r} before it always answers.")
    return names


def checked_chain(text: str, policy: ModelsPolicy | None = None) -> tuple[str, ...]:
    """The chain, if all its models are configured; Invalid names what is missing."""
    names = chain_of(text)
    models = [name for name in names if name != EXTRACTIVE]
    policy = policy or (ModelsPolicy.from_settings() if models else ModelsPolicy())
    for name in models:
        missing = policy.missing(name)
        if missing:
            raise Invalid(f"summarizer: {_is_missing(name, missing)}")
    return names


def _setting(field: str) -> str:
    return f"LCM_{field.upper()}"


def _is_missing(name: str, missing: tuple[str, ...]) -> str:
    return f"{name!r} is not configured: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set."


def _read_key(path: str) -> tuple[Secret, str]:
    """The key in a file, or what is wrong with the file.

    Not the path of the file, which may be a key in the wrong place.
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            content = file.read(_LONGEST_KEY_FILE + 1)
    except (OSError, ValueError, RuntimeError) as refusal:
        return Secret(), f"the file cannot be read ({getattr(refusal, 'strerror', None) or 'not a path'})"
    if len(content) > _LONGEST_KEY_FILE:
        return Secret(), "the file is too long to be a key"
    key = content.decode("utf-8", errors="replace").removeprefix("\ufeff").strip()
    return Secret(key), "" if key else "the file is empty"
