"""How much of what is needed later survives a summary: goals 8 and 9, beside what the field does without a model.

Goal 8, talk: blocks of LoCoMo's messages are summarized to a share of their tokens. Of each question's answer, the
words that stand in its evidence turns should stand in the summary of those turns' blocks.
Goal 9, agents: blocks of agent sessions are summarized from about 3,000 tokens to 600. The names (paths, symbols,
hashes) of a block that the user, the assistant or a tool call of the session mentions again later should stand in the
summary.

Everything a summary prints is paid from its budget: heads, days, the list of names and the closing line too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from compaction.summarizing.summarizer import SourceMessage, Summarizer, SummaryRequest
from conversations.content.tokens import TokenEstimator
from tests.conversations.real_data import conversation_files, rows_of
from tests.evaluation.fallbacks import FALLBACKS
from tests.evaluation.figures import Figure, questions_of_locomo, words_of

Row = dict[str, Any]
Summarize = Callable[[Sequence[SourceMessage], int], str]

TALK_BLOCK = 32
AGENT_BLOCK = 3000
AGENT_TARGET = 600

count = TokenEstimator(encoding="o200k_base").count

# Written apart from the summarizer's own idea of a name, so that it cannot flatter it.
_NAME = re.compile(
    r"""https?://[^\s"'<>)\]}\\]+
    | (?:[~.]{0,2}/)?(?:[\w.@+-]+/)+[\w.@+-]*\w
    | \b[\w-]+\.(?:py|tsx?|jsx?|mjs|json|md|rb|rs|go|java|c|h|cpp|exs?|heex|html|s?css|sh|sql|toml|ya?ml|txt|cfg|ini
                  |lock|log|xml|csv|zip|img|ipynb)\b
    | \b[0-9a-f]{7,40}\b
    | \b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b
    | \b[a-z]+[A-Z]\w*\b
    | \b(?:[A-Z][a-z0-9]+){2,}\b
    | \b[A-Z]+-?\d+\w*\b""",
    re.VERBOSE,
)


def figures() -> Iterator[Figure]:
    """Goals 8 and 9: ours, then the peers' fallbacks."""
    extractive, telegraphic = with_summarizer(ExtractiveSummarizer()), with_summarizer(TelegraphicSummarizer())
    for share, goal, last_resort_goal in ((0.2, 0.72, 0.89), (0.3, 0.85, 0.96)):
        measure = f"answer words kept, {TALK_BLOCK} messages, {share:.0%} of the tokens"
        yield Figure(8, measure, "extractive", answers_kept(extractive, share=share), goal)
        yield Figure(8, measure, "telegraphic", answers_kept(telegraphic, share=share), last_resort_goal)
        for name, fallback in FALLBACKS.items():
            yield Figure(8, measure, name, answers_kept(_of_texts(fallback), share=share))
    measure = f"names needed again, {AGENT_BLOCK} to {AGENT_TARGET} tokens"
    yield Figure(9, measure, "extractive", names_kept(extractive), 0.84)
    yield Figure(9, measure, "telegraphic", names_kept(telegraphic))
    for name, fallback in FALLBACKS.items():
        yield Figure(9, measure, name, names_kept(_of_texts(fallback)))


def with_summarizer(summarizer: Summarizer) -> Summarize:
    """The summarizer as a function of messages and target; a text over its target is an error, not a figure."""

    def summarize(messages: Sequence[SourceMessage], target: int) -> str:
        request = SummaryRequest(sources=tuple(messages), target_tokens=target, count_tokens=count)
        text = summarizer.summarize(request).text
        if count(text) > target:
            raise AssertionError(f"{summarizer.name} wrote {count(text)} tokens where {target} were asked for.")
        return text

    return summarize


def answers_kept(summarize: Summarize, *, share: float) -> float:
    """Goal 8: the share of the answers' words that the summaries of their evidence keep."""
    blocks, needs = _talk()
    summaries = [
        words_of(
            summarize(
                [_as_source(row) for row in block], int(share * count("\n".join(row["content"] for row in block)))
            )
        )
        for block in blocks
    ]
    kept = sum(any(word in summaries[block] for block in where) for need in needs for word, where in need.items())
    return kept / sum(map(len, needs))


def names_kept(summarize: Summarize) -> float:
    """Goal 9: the share of a block's names needed again that its summary keeps, mean over the blocks that have any."""
    shares = []
    for block, needed in _agent_blocks():
        text = summarize([_as_source(row) for row in block], AGENT_TARGET)
        shares.append(sum(name in text for name in needed) / len(needed))
    return sum(shares) / len(shares)


def _of_texts(fallback: Callable[[Sequence[str], int, Callable[[str], int]], str]) -> Summarize:
    # A peer's fallback sees the speaker as a part of the text, which is how the field stores it.
    return lambda messages, target: fallback(
        [f"{message.author}: {message.text}" if message.author else message.text for message in messages], target, count
    )


@lru_cache(maxsize=1)
def _talk() -> tuple[list[list[Row]], list[dict[str, set[int]]]]:
    """Blocks of talk, and per question the answer's words with the blocks that say them in evidence."""
    questions = list(questions_of_locomo())
    blocks: list[list[Row]] = []
    needs: list[dict[str, set[int]]] = []
    for file in conversation_files():
        if not file.name.startswith("locomo_"):
            continue
        rows = list(rows_of(file))
        first = len(blocks)
        blocks += [rows[start : start + TALK_BLOCK] for start in range(0, len(rows), TALK_BLOCK)]
        said = {
            row["meta"]["dia_id"]: (first + at // TALK_BLOCK, words_of(row["content"])) for at, row in enumerate(rows)
        }
        for question, turns in questions:
            if f"locomo_{question['conv']}." not in file.name:
                continue
            need: dict[str, set[int]] = defaultdict(set)
            for turn in turns:
                block, words = said.get(turn, (0, frozenset()))
                for word in words & words_of(str(question["answer"])):
                    need[word].add(block)
            if need:
                needs.append(need)
    return blocks, needs


@lru_cache(maxsize=1)
def _agent_blocks() -> list[tuple[list[Row], frozenset[str]]]:
    """Blocks of agent sessions with the names in them that the session needs again, where there are any."""
    found = []
    for file in conversation_files():
        if file.name.startswith(("locomo_", "lme_")):
            continue
        rows = [row for row in rows_of(file) if row["role"] != "system" and not _is_compaction(row)]
        later: list[frozenset[str]] = [frozenset()]
        for row in reversed(rows):
            later.append(later[-1] | _names(_spoken(row)))
        later.reverse()
        block: list[Row] = []
        tokens = 0
        for at, row in enumerate(rows):
            block.append(row)
            tokens += count(row["content"])
            if tokens >= AGENT_BLOCK:
                here = _names(text for row in block for text in (*_spoken(row), *_printed(row)))
                needed = here & later[at + 1]
                if needed:
                    found.append((block, needed))
                block, tokens = [], 0
    return found


def _is_compaction(row: Row) -> bool:
    return any(part["type"] == "compaction" for part in row["parts"])


def _spoken(row: Row) -> Iterator[str]:
    """What the user or the assistant said or asked a tool for."""
    if row["role"] == "tool":
        return
    for part in row["parts"]:
        if part["type"] == "text":
            yield part["text"]
        elif part["type"] == "tool_call":
            yield from _strings(part["input"])


def _printed(row: Row) -> Iterator[str]:
    for part in row["parts"]:
        if part["type"] == "tool_result" or row["role"] == "tool" and part["type"] == "text":
            yield part["text"]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _names(texts: Iterator[str]) -> frozenset[str]:
    found = {match.group().rstrip(".,;:") for text in texts for match in _NAME.finditer(text)}
    return frozenset(name for name in found if len(name) > 3 and not _is_plain(name))


def _is_plain(name: str) -> bool:
    """A hexadecimal "hash" that is a number or a word."""
    return re.fullmatch(r"[0-9a-f]+", name) is not None and (name.isdigit() or name.isalpha())


def _as_source(row: Row) -> SourceMessage:
    speaker = (row.get("meta") or {}).get("speaker", "")
    return SourceMessage(
        source_id=f"msg_{row['seq']}",
        seq=row["seq"] + 1,
        role=row["role"],
        text=row["content"].removeprefix(f"{speaker}: ") if speaker else row["content"],
        author=speaker,
        time=datetime.fromisoformat(row["created_at"]) if row["created_at"] else None,
    )
