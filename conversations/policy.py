"""Settings of the domain as values, with their defaults and bounds.

Each app declares a frozen policy. A field with a `knob` is a setting: its environment name is `LCM_` and the field in
capitals. A field without one is a constant. `settings.LCM` holds what an operator changed; a conversation may override
some settings for itself.
Settings are read before Django is ready, so nothing here may import it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Self, get_type_hints

from conversations.content.lossless_values import is_storable
from conversations.errors import Invalid

# In bytes. A secret is short; a longer file is the wrong one, and is not read to its end.
_LONGEST_SECRET = 10_000
_FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Secret(str):
    """A text that its repr hides, in settings, debug pages and tracebacks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'" if self else "''"


@dataclass(frozen=True)
class SecretFile:
    """A file with a secret, read on each use: a new one takes effect at once."""

    path: str = field(repr=False)

    def read(self) -> tuple[Secret, str]:
        """Return the secret, and the fault of the file without its content, or ""."""
        # Another text is not quoted: it may be the secret itself, in the wrong setting.
        file = f"the file {self.path}" if self.path.startswith(("/", "~", ".")) else "the file"
        try:
            with Path(self.path).expanduser().open("rb") as opened:
                content = opened.read(_LONGEST_SECRET + 1)
        except (OSError, ValueError, RuntimeError) as refusal:
            return Secret(), f"{file} cannot be read ({getattr(refusal, 'strerror', None) or 'not a path'})"
        if len(content) > _LONGEST_SECRET:
            return Secret(), f"{file} is too long for a secret"
        secret = content.decode("utf-8", errors="replace").removeprefix("\ufeff").strip()
        return Secret(secret), "" if secret else f"{file} is empty"


def create_secret_file(file: Path, secret: str) -> None:
    """Write a secret to a private file, unless another process has created it first."""
    fresh = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as opened:
            opened.write(secret)
            opened.flush()
            os.fsync(opened.fileno())
        # A link, not a rename: it fails where a rename would replace the secret that others already use.
        os.link(fresh, file)
    except FileExistsError:
        return
    finally:
        fresh.unlink()


def read_secret(given: str | SecretFile) -> tuple[Secret, str]:
    """Return a secret, given as itself or as a file, and the fault of the file."""
    return given.read() if isinstance(given, SecretFile) else (Secret(given), "")


def knob(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    per_conversation: bool = False,
    schemes: tuple[str, ...] = (),
    secret: bool = False,
    in_environment: bool = True,
) -> Any:
    """One setting: default, help and inclusive bounds (of a text, of its length).

    `schemes` are the allowed schemes of a URL. No page and no command shows the value of a `secret`, which may also be
    given as a file: `<NAME>_FILE` has its path.
    """
    return field(
        default=default,
        repr=not secret,
        metadata={
            "help": help,
            "low": low,
            "high": high,
            "per_conversation": per_conversation,
            "schemes": schemes,
            "secret": secret,
            "in_environment": in_environment,
        },
    )


def conversation_knob(default: Any, help: str, **bounds: Any) -> Any:
    """A setting of conversations; LCM_CONVERSATION_DEFAULTS sets its default."""
    return knob(default, help, per_conversation=True, in_environment=False, **bounds)


def checked(knob_field: Field[Any], kind: type, value: Any) -> Any:
    """Return the value as the knob's type; ValueError says what it takes."""
    low, high = knob_field.metadata.get("low"), knob_field.metadata.get("high")
    if kind is bool:
        word = str(value).strip().lower()
        if not isinstance(value, bool) and word not in _FLAGS:
            raise ValueError(f"{_shown(value)} is not yes or no")
        return value if isinstance(value, bool) else _FLAGS[word]
    if kind in (int, float):
        number = None if isinstance(value, bool) else _number(kind, value)
        if number is None:
            noun = "a whole number" if kind is int and not isinstance(value, bool) else "a number"
            raise ValueError(f"{_shown(value)} is not {noun}")
        if (low is not None and number < low) or (high is not None and number > high):
            raise ValueError(f"{_shown(value)} is outside {_range(low, high)}")
        return number
    if knob_field.metadata.get("secret"):
        # No check that could fail: its error would show the value.
        return Secret(value)
    if not isinstance(value, str):
        raise ValueError(f"{_shown(value)} is not a text")
    if high is not None and len(value) > high:
        raise ValueError(f"a text of {len(value):,} characters is too long: at most {high:,} are taken")
    if knob_field.metadata.get("per_conversation") and not is_storable(value):
        # It is stored in a row: the database would refuse it later, with a less clear error.
        raise ValueError("a text must not contain NUL or lone surrogates")
    return value


def _number(kind: type[int] | type[float], value: Any) -> int | float | None:
    """Convert the value to this kind of number; None for NaN, or if it is not one."""
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        return None
    is_cut = kind is int and isinstance(value, float) and value != number
    return None if number != number or is_cut else number


def _shown(value: Any) -> str:
    """The value, shortened for a sentence."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"{low} and above"
    return f"{low} to {high}" if low is not None else f"up to {high}"


@dataclass(frozen=True)
class Policy:
    """Base of each app's policy."""

    @classmethod
    @cache
    def kinds(cls) -> dict[str, type]:
        """Each field's type by name."""
        return get_type_hints(cls)

    @classmethod
    def from_settings(cls) -> Self:
        """Return the operator's policy: the defaults, overridden by `settings.LCM`."""
        from django.conf import settings

        return cls(**{name: value for name, value in settings.LCM.items() if name in cls.kinds()})

    def overridden(self, overrides: Mapping[str, Any]) -> Self:
        """Return this policy with a conversation's values; ignores other policies'.

        Raises Invalid for a value that a knob does not accept.
        """
        kinds = self.kinds()
        changes = {}
        for name in overrides.keys() & kinds.keys():
            try:
                changes[name] = checked(self.__dataclass_fields__[name], kinds[name], overrides[name])
            except ValueError as wrong:
                raise Invalid(f"{name}: {wrong}.") from wrong
        return replace(self, **changes) if changes else self

    def require_possible(self) -> None:
        """Raise Invalid if these values contradict each other.

        Called when a conversation's own settings are saved, on the resulting policy.
        """


# Shorter texts never become files, so that appending short messages does not read the conversation's settings.
LEAST_LARGE_TOKENS = 2_000


@dataclass(frozen=True)
class StorePolicy(Policy):
    """What the store accepts, and how it counts."""

    encoding: str = knob(
        "o200k_base", "How tokens are counted: a tiktoken encoding, a model's name, or 'estimate' for no tokenizer."
    )
    # The most messages one append may carry.
    max_batch_messages: int = 1000
    # The most parts one message may carry.
    max_message_parts: int = 10_000
    # The most bytes, as JSON, of what a message carries beside its texts and attachments: its metadata and those
    # of its parts. The same holds for the metadata of a conversation and of a boundary.
    max_metadata_bytes: int = 65_536
    large_file_tokens: int = conversation_knob(
        25_000,
        "A text of a message with more tokens than this is stored as a file, and a description of the file replaces it "
        f"in the message and in searches; 0 for never, otherwise at least {LEAST_LARGE_TOKENS:,}.",
        low=0,
        high=100_000_000,
    )

    def require_possible(self) -> None:
        if 0 < self.large_file_tokens < LEAST_LARGE_TOKENS:
            raise Invalid(
                f"large_file_tokens must be 0 or at least {LEAST_LARGE_TOKENS:,}: otherwise the description of a file "
                "would be no shorter than its text.",
                code="cannot_be_satisfied",
            )


@dataclass(frozen=True)
class FilePolicy(Policy):
    """How large files may be, and how they arrive."""

    max_file_bytes: int = knob(2 * 1024**3, "Maximum size of one file, in bytes.", low=1024, high=1024**4)
    # The bytes of each chunk of an upload but the last; LCM_MAX_REQUEST_BYTES must have room for it.
    upload_chunk_bytes: int = 4 * 1024**2
    # An unfinished upload is deleted after so many hours without a new chunk.
    upload_hours: int = 24


def conversation_knobs() -> dict[str, type[Policy]]:
    """Return the settings that a conversation may override: name to policy class."""
    return {
        each.name: policy
        for policy in Policy.__subclasses__()
        for each in fields(policy)
        if each.metadata.get("per_conversation")
    }


def check_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a conversation's own settings and return them as their knobs' types.

    Raises Invalid for an unknown name, a value that is not accepted, or values that contradict this site's settings.
    """
    owners, values = conversation_knobs(), typed_overrides(overrides)
    for policy in {owners[name] for name in values}:
        policy.from_settings().overridden(values).require_possible()
    return values


def typed_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Like `check_overrides`, but do not compare with the settings of this site."""
    owners = conversation_knobs()
    for name in overrides:
        if name not in owners:
            known = ", ".join(sorted(owners))
            raise Invalid(f"{str(name)[:80]!r} is not a setting of a conversation; the settings are {known}.")
    return {name: getattr(owners[name]().overridden({name: value}), name) for name, value in overrides.items()}
