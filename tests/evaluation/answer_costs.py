"""What answers cost a model that asks by MCP: goal 14, the texts of the tools in tokens, on sessions of agents.

The sessions are compacted as an operator would have it. The limits are those of a search of 3 and of 20 matches, of a
described summary, and of an opened leaf beside its own text.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from compaction.engine import CompactionEngine
from conversations.content.tokens import TokenEstimator
from conversations.models import Summary
from lcmsite.answers import found_texts  # noqa: F401 (registers the texts of searches and readings)
from lcmsite.answers.answer_text import text_of
from tests.evaluation.figures import Figure
from tests.evaluation.retrieval import Corpus

WORKSPACE = "evaluation of answers"
MOST_QUERIES, MOST_SUMMARIES = 60, 40
SEARCHES = {3: 350, 20: 1800}
DESCRIBED, OPENED = 900, 1.1


def figures() -> Iterator[Figure]:
    """Goal 14: of each kind of answer what it costs, and how many are within the limit."""
    corpus = Corpus.loaded(WORKSPACE, named="cc_")
    count = TokenEstimator("o200k_base").count
    engine = CompactionEngine.from_settings(corpus.scope)
    for conversation_id in corpus.conversations.values():
        engine.compact(conversation_id=conversation_id)
    asked = [query for form, query in corpus.identifiers() if form == "in a question"][:MOST_QUERIES]
    for limit, most in SEARCHES.items():
        costs = [
            count(text_of(corpus.engine.grep(query=each.text, conversation_id=each.conversation_id, limit=limit)))
            for each in asked
        ]
        yield from _within(f"a search of {limit} matches", costs, most)
    for kind in ("leaf", "condensed"):
        summaries = Summary.objects.filter(conversation_id__in=corpus.conversations.values(), kind=kind)
        ids = sorted(summaries.values_list("pk", flat=True))[:MOST_SUMMARIES]
        described = [corpus.engine.describe(id=each) for each in ids]
        costs = [count(text_of(each)) for each in described]
        yield from _within(f"a described {kind} summary", costs, DESCRIBED)
        if kind == "leaf":
            around = [cost - count(each.content or "") for cost, each in zip(costs, described, strict=True)]
            yield Figure(14, "a described leaf summary: tokens around its text, mean", "lcm", statistics.fmean(around))
            opened = [corpus.engine.expand(summary_id=each, include_messages=True) for each in ids]
            shares = [count(text_of(each)) / sum(count(item.content or "") for item in each.items) for each in opened]
            yield from _within("an opened leaf, beside its text", shares, OPENED)


def _within(what: str, costs: Sequence[float], most: float) -> Iterator[Figure]:
    unit = "times" if most < 10 else "tokens"
    yield Figure(14, f"{what}: {unit}, mean", "lcm", statistics.fmean(costs))
    yield Figure(
        14, f"{what}: within {most:g} {unit}, of all", "lcm", sum(each <= most for each in costs) / len(costs), 1
    )
