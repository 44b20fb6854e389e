"""The request to a summarizer, and the draft that it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from conversations.types import Level


@dataclass(frozen=True, kw_only=True)
class SourceMessage:
    """One message as a summarizer reads it, without reasoning and base64.

    `text` is the flattened form: text unchanged, a tool call as one line `[tool_call NAME] {json}`. The text is
    untrusted: summarizers report what it says and never obey it.
    """

    source_id: str
    seq: int
    role: str
    text: str
    author: str = ""
    time: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class SourceSummary:
    """One older summary that a condensed summary is made from."""

    source_id: str
    depth: int
    first_seq: int
    last_seq: int
    text: str
    earliest_at: datetime | None = None
    latest_at: datetime | None = None
    # What the summary covers, if not a range of messages: for example a session of a project.
    about: str = ""


Source = SourceMessage | SourceSummary

# An accepted text may be this many times longer than its target, because models count tokens only roughly.
TARGET_FACTOR = 1.5


@dataclass(frozen=True, kw_only=True)
class SummaryRequest:
    """What to summarize, oldest first, and how long the summary may be.

    `level`, `depth`, `task` and the last five fields are for language models. The summarizers without a model work the
    same way at every level: a smaller target makes their texts shorter.

    `previous` is the text of the previous summary. `instructions` is what this conversation's owner wants to keep.
    `most_tokens` is the maximum length of an accepted text; if None, `target_factor` determines it. `deadline` is the
    value of time.monotonic() by which an answer must have arrived.
    """

    sources: tuple[Source, ...]
    target_tokens: int
    count_tokens: Callable[[str], int]
    depth: int = 0
    # The task of the prompt, if it does not follow from the depth: session, arc or epoch.
    task: str = ""
    level: Level = Level.NORMAL
    previous: str = ""
    instructions: str = ""
    target_factor: float = TARGET_FACTOR
    most_tokens: int | None = None
    deadline: float | None = None

    @property
    def acceptable_tokens(self) -> int:
        return int(self.target_factor * self.target_tokens) if self.most_tokens is None else self.most_tokens


@dataclass(frozen=True, kw_only=True)
class SummaryDraft:
    """A summary's text, and what its summarizer knows about it.

    `quality` is the share, from 0 to 1, of the sources' weighted words and names that the text keeps; None if not
    measured. `left_out` counts the sources of which no line was kept. The last three fields are for language models:
    the version of the prompt, and the input and output tokens for this text, including failed calls.
    """

    text: str
    model: str
    quality: float | None = None
    left_out: int = 0
    prompt_hash: str = ""
    tokens_in: int = 0
    tokens_out: int = 0


class Summarizer(Protocol):
    """Turns a request into a draft; may be slow, may fail, never writes."""

    @property
    def name(self) -> str: ...

    def summarize(self, request: SummaryRequest) -> SummaryDraft: ...
