"""System checks of the site: what is wrong with its settings, each with an id and a hint."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from conversations.policy import StorePolicy
from conversations.tokens import BUNDLED, ESTIMATE, TokenEstimator


@register()
def environment_is_understood(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error for each setting of the environment that is unknown or could not be used."""
    return [Error(problem.detail, hint=problem.hint, id=problem.id) for problem in settings.CONFIGURATION_PROBLEMS]


@register()
def tokens_are_counted_as_asked(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error where no tokenizer is known by the given name, and every count would be an estimate unasked."""
    encoding = StorePolicy.from_settings().encoding
    if encoding == ESTIMATE or TokenEstimator(encoding).name != ESTIMATE:
        return []
    known = ", ".join(sorted(BUNDLED))
    return [
        Error(
            f"LCM_ENCODING: no tokenizer is known for {encoding!r}.",
            hint=f"Use {known}, the name of a model of theirs, or {ESTIMATE!r} to count by characters.",
            id="lcm.E004",
        )
    ]
