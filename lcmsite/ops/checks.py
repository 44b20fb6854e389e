"""System checks of the settings, each with an id and a hint."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from compaction.llm.configuration import MODELS, ModelsPolicy, require_configured_chain
from compaction.llm.types import Misconfigured
from compaction.policy import CompactionPolicy
from conversations.content.tokens import BUNDLED, ESTIMATE, TokenEstimator
from conversations.errors import Invalid
from conversations.policy import FilePolicy, StorePolicy


@register()
def environment_is_understood(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error for each LCM_ variable that is unknown or has an unusable value."""
    return [*settings.CONFIGURATION_PROBLEMS]


@register()
def encoding_is_known(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error for an unknown tokenizer: tokens would only be estimated."""
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
def summarizers_are_usable(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error for an impossible chain of summarizers or an unusable model."""
    found: list[CheckMessage] = []
    try:
        require_configured_chain(CompactionPolicy.from_settings().summarizer)
    except Invalid as wrong:
        sentence = wrong.detail.removeprefix("summarizer: ")
        found.append(Error(f"LCM_SUMMARIZER: {sentence}", hint="README.md lists the settings.", id="lcm.E005"))
    models = ModelsPolicy.from_settings()
    for name in MODELS:
        try:
            if not models.missing(name):
                models.endpoint(name)
                models.prices(name)
                models.temperature_by_level()
        except Misconfigured as misconfigured:
            hint = "Complete the settings of this model, or remove them."
            found.append(Error(misconfigured.detail, hint=hint, id="lcm.E006"))
    return found


@register()
def sizes_fit_each_other(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error for each pair of size settings that contradict each other."""
    found: list[CheckMessage] = []
    chunk, request = FilePolicy.from_settings().upload_chunk_bytes, settings.DEPLOYMENT.max_request_bytes
    if chunk > request:
        found.append(
            Error(
                f"LCM_MAX_REQUEST_BYTES {request:,} is less than {chunk:,}, a chunk of an upload: none could be sent.",
                hint="Raise it.",
                id="lcm.E020",
            )
        )
    models = ModelsPolicy.from_settings()
    written = models.model_max_output_tokens
    for name in MODELS:
        window = models.window_tokens(name)
        if not models.missing(name) and written >= window:
            found.append(
                Error(
                    f"LCM_MODEL_MAX_OUTPUT_TOKENS {written:,} fills LCM_{name.upper()}_WINDOW_TOKENS {window:,}: "
                    "there is no room for a prompt.",
                    hint="Lower the first or raise the second.",
                    id="lcm.E021",
                )
            )
    return found


@register()
def compaction_can_work(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An error for settings of compaction that contradict each other."""
    hint = "Each name in it is a setting: LCM_ and the name in capitals. Change one of them."
    found = CompactionPolicy.from_settings().contradictions()
    return [Error(sentence, hint=hint, id="lcm.E007") for sentence in found]
