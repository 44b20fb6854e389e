"""The settings in force, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from pydantic import Field

from compaction.llm.configuration import ModelsPolicy
from compaction.llm.embeddings import EmbedderPolicy
from conversations.policy import Policy
from lcmsite.environment import TITLES, Deployment, Variable, declared_settings


class Source(StrEnum):
    """Where a setting's value comes from."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    CONVERSATION = "conversation"


@dataclass(frozen=True)
class Setting:
    """One setting in force; for a secret, only whether it is set."""

    name: str
    help: str
    value: Any
    default: Any
    source: Source
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    is_secret: bool
    is_set: bool
    per_conversation: bool


@dataclass(frozen=True)
class SettingGroup:
    """The settings of one room; `operator_only`: only for site administrators."""

    title: str
    settings: tuple[Setting, ...]
    operator_only: Annotated[bool, Field(serialization_alias="of_the_site")] = False


@dataclass(frozen=True)
class EffectiveSettings:
    """Every setting in force."""

    groups: tuple[SettingGroup, ...]


# Only for site administrators: addresses, processes, models, their prices and limits.
_OPERATOR_ONLY = frozenset({ModelsPolicy, EmbedderPolicy, Deployment})


def settings_in_force(overrides: Mapping[str, Any] | None = None) -> tuple[SettingGroup, ...]:
    """Every setting, by room; `overrides` are a conversation's own values."""
    known = list(declared_settings())
    return tuple(
        SettingGroup(
            title=title,
            settings=tuple(_setting_of(each, overrides or {}) for each in known if each.owner is owner),
            operator_only=owner in _OPERATOR_ONLY,
        )
        for owner, title in TITLES.items()
    )


def _setting_of(variable: Variable, overrides: Mapping[str, Any]) -> Setting:
    about = variable.knob.metadata
    value, source = _value_and_source(variable, overrides)
    return Setting(
        name=variable.name,
        help=about["help"],
        value=None if variable.is_secret else _without_credentials(value) if about.get("schemes") else value,
        default=None if variable.is_secret else variable.default,
        source=source,
        low=about["low"],
        high=about["high"],
        choices=tuple(about.get("choices") or ()),
        is_secret=variable.is_secret,
        is_set=value not in ("", None),
        per_conversation=bool(about.get("per_conversation")),
    )


def _without_credentials(address: str) -> str:
    """The address without its credentials; "" if it cannot be parsed."""
    try:
        parts = urlsplit(address)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
    except ValueError:
        return ""


def _value_and_source(variable: Variable, overrides: Mapping[str, Any]) -> tuple[Any, Source]:
    name = variable.knob.name
    if not issubclass(variable.owner, Policy):
        source = Source.ENVIRONMENT if variable.name in settings.ENVIRONMENT.given else Source.DEFAULT
        return getattr(settings.DEPLOYMENT, name), source
    policy = variable.owner.from_settings()
    if variable.knob.metadata["per_conversation"] and name in overrides:
        return getattr(policy.overridden({name: overrides[name]}), name), Source.CONVERSATION
    return getattr(policy, name), Source.ENVIRONMENT if name in settings.LCM else Source.DEFAULT
