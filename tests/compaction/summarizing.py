"""What the tests of the summarizers ask with: sources, counters and any text whatever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from hypothesis import strategies as st

from compaction.summarizing.summarizer import Source, SourceMessage, SourceSummary, SummaryRequest
from conversations.content.tokens import TokenEstimator, estimate

exact = TokenEstimator(encoding="o200k_base").count

# A counter is the caller's: a real tokenizer, one by length, one by words, one by characters.
COUNTERS: dict[str, Callable[[str], int]] = {
    "o200k": exact,
    "estimate": estimate,
    "words": lambda text: len(text.split()),
    "characters": len,
}


def said(*texts: str, role: str = "user", author: str = "", first_seq: int = 1) -> tuple[SourceMessage, ...]:
    """Messages of one speaker, in order."""
    return tuple(a_message(text, seq=seq, role=role, author=author) for seq, text in enumerate(texts, first_seq))


def a_message(
    text: str, *, seq: int = 1, role: str = "user", author: str = "", time: datetime | None = None
) -> SourceMessage:
    return SourceMessage(source_id=f"msg_{seq}", seq=seq, role=role, text=text, author=author, time=time)


def a_summary(
    text: str, *, first_seq: int, last_seq: int, earliest_at: datetime | None = None, latest_at: datetime | None = None
) -> SourceSummary:
    return SourceSummary(
        source_id=f"sum_{first_seq:016x}",
        depth=0,
        first_seq=first_seq,
        last_seq=last_seq,
        text=text,
        earliest_at=earliest_at,
        latest_at=latest_at,
    )


def a_request(sources: Sequence[Source], *, target: int, count_tokens: Callable[[str], int] = exact) -> SummaryRequest:
    return SummaryRequest(sources=tuple(sources), target_tokens=target, count_tokens=count_tokens)


_OF_OUR_FORMAT = [
    *("The port is 5433. ", "not ", "src/ledger.py ", "\n", "  ", "12-14 user: ", "Also named: ", "7 tool: ", "。"),
    *("Expand for details about: x (1 of 2 messages).", "```\n", "[tool_call X] {", "March 7\n", "漢字", "\0", "👍🏽"),
]
# Everything a str can hold, lone surrogates and control characters too, and what our own format is made of.
any_text = st.one_of(
    st.text(st.characters(exclude_categories=())), st.lists(st.sampled_from(_OF_OUR_FORMAT)).map("".join)
)
any_message = st.builds(
    a_message,
    any_text,
    seq=st.integers(1, 10**6),
    role=st.sampled_from(["user", "assistant", "tool", "system"]),
    author=any_text,
    time=st.none() | st.datetimes(),
)
any_summary = st.builds(
    a_summary,
    any_text,
    first_seq=st.integers(1, 50),
    last_seq=st.integers(50, 100),
    earliest_at=st.none() | st.datetimes(),
)
any_sources = st.lists(any_message | any_summary, max_size=6)
