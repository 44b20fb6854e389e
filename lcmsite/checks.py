"""System checks of the site: what is wrong with its settings, each with an id and a hint."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register()
def environment_is_understood(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error for each setting of the environment that is unknown or could not be used."""
    return [Error(problem.detail, hint=problem.hint, id=problem.id) for problem in settings.CONFIGURATION_PROBLEMS]
