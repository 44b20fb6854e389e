"""System checks of the site: what is wrong with its settings, each with an id and a hint."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from compaction.arithmetic import contradictions
from compaction.language_models.configuration import MODELS, ModelsPolicy, checked_chain
from compaction.language_models.withheld import Misconfigured
from compaction.policy import CompactionPolicy
from conversations.errors import Invalid
from conversations.policy import StorePolicy
from conversations.tokenizers import BUNDLED
from conversations.tokens import ESTIMATE, TokenEstimator


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


@register()
def summarizers_can_be_asked(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error for a chain of summarizers that cannot be, and for each configured model that cannot be called."""
    found: list[CheckMessage] = []
    try:
        checked_chain(CompactionPolicy.from_settings().summarizer)
    except Invalid as wrong:
        sentence = wrong.detail.removeprefix("summarizer: ")
        found.append(Error(f"LCM_SUMMARIZER: {sentence}", hint="README.md lists the settings.", id="lcm.E005"))
    models = ModelsPolicy.from_settings()
    for name in MODELS:
        try:
            if not models.missing(name):
                models.endpoint(name)
        except Misconfigured as misconfigured:
            hint = "A model that is configured must be one that can be called; or take its settings away."
            found.append(Error(misconfigured.detail, hint=hint, id="lcm.E006"))
    return found


@register()
def compaction_can_work(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error for settings of compaction that cannot be satisfied together, with the sum that shows it."""
    hint = "Each name in it is a setting: LCM_ and the name in capitals. Change one of them."
    found = contradictions(CompactionPolicy.from_settings())
    return [Error(sentence, hint=hint, id="lcm.E007") for sentence in found]
