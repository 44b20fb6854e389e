"""How long a summary may be, and what fits where there is little room."""

from __future__ import annotations

from collections.abc import Callable

from compaction.summarizing.extractive.clean_text import fit
from compaction.summarizing.extractive.material import Material
from compaction.summarizing.extractive.summary_form import closing
from compaction.summarizing.summarizer import SummaryRequest

# A summary that is more than half as long as its sources is not worth losing their words for; but a line is.
_MOST_OF_SOURCE = 0.5
_A_LINE = 8

# With less room than this, every token goes into content, and none into a closing line.
ROOM_FOR_CLOSING = 40

# The shortest text: that there was something.
MARK = "…"

# Sources with more characters than this for every token of the target are longer than two targets in any script, so
# they need not be counted.
_SURELY_LONG = 16


def affordable(request: SummaryRequest) -> int:
    """The target, or half of what the sources cost if that is less."""
    characters = sum(len(source.text) for source in request.sources)
    if characters > _SURELY_LONG * request.target_tokens:
        return request.target_tokens
    cost = sum(request.count_tokens(source.text) for source in request.sources)
    return min(request.target_tokens, max(_A_LINE, int(_MOST_OF_SOURCE * cost)), max(1, cost - 1))


def best_beginning(material: Material, budget: int, count_tokens: Callable[[str], int]) -> str:
    """The beginning of the best unit, where not one whole unit fits."""
    best = max(range(len(material.statements)), key=lambda index: (material.gain(index), -index))
    place, unit, *_ = material.statements[best]
    passage = material.passages[place]
    headed = f"{passage.head}: "
    text = fit(headed + unit.text, budget, count_tokens)
    if len(text) > len(headed):
        return text
    return fit(unit.text, budget, count_tokens) or fit(MARK, budget, count_tokens)


def text_without_content(request: SummaryRequest, budget: int) -> str:
    """The text for sources without words, such as pictures."""
    if not request.sources:
        return ""
    text = closing([], left_out=len(request.sources), sources=request.sources)
    return text if request.count_tokens(text) <= budget else fit(MARK, budget, request.count_tokens)
