"""Assembled items as the messages of somebody's API: a format a file, each a pure function.

What has to be changed so that the API takes them is said in the `repairs`; nothing is changed in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from retrieval.assembly.types import AssembledItem, MessageFormat
from retrieval.formats.anthropic import as_anthropic
from retrieval.formats.neutral import as_neutral, rendered_neutral
from retrieval.formats.openai import as_openai
from retrieval.formats.openai_responses import as_openai_responses
from retrieval.formats.rendered import Rendered

FORMATS: Mapping[MessageFormat, Callable[[Iterable[AssembledItem]], Rendered]] = {
    MessageFormat.NEUTRAL: rendered_neutral,
    MessageFormat.OPENAI: as_openai,
    MessageFormat.OPENAI_RESPONSES: as_openai_responses,
    MessageFormat.ANTHROPIC: as_anthropic,
}

__all__ = ["FORMATS", "Rendered", "as_anthropic", "as_neutral", "as_openai", "as_openai_responses"]
