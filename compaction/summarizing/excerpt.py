"""Excerpt a plain text in a few of its own sentences."""

from __future__ import annotations

import math
import re

from compaction.summarizing.extractive.clean_text import estimate_tokens
from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.summarizer import SourceMessage, SummaryRequest

_PARAGRAPH = re.compile(r"\n\s*\n")
MOST_PARAGRAPHS = 200


def gist(text: str, tokens: int) -> str:
    """At most so many tokens of the text."""
    paragraphs = [paragraph for paragraph in _PARAGRAPH.split(text, maxsplit=MOST_PARAGRAPHS) if paragraph.strip()]
    sources = tuple(
        SourceMessage(source_id=f"paragraph {at}", seq=at, role="", text=paragraph)
        for at, paragraph in enumerate(paragraphs, start=1)
    )
    if not sources:
        return ""
    request = SummaryRequest(
        sources=sources, target_tokens=tokens, count_tokens=lambda piece: math.ceil(estimate_tokens(piece))
    )
    summary = ExtractiveSummarizer().summarize(request).text
    # There is nothing to expand here.
    return "\n".join(line for line in summary.split("\n") if not line.startswith("Expand for details"))
