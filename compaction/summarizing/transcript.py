"""Render sources for a language model: time, role, name and text of each. Pure.

    [2026-03-07 14:02 UTC | user | Anna]
    Please export the archived rows too.
    [2026-03-07 14:03 UTC | assistant]
    [tool_call Bash] {"command": "pytest tests/export"}
    [2026-03-07 14:03 UTC | tool | Bash]
    FAILED tests/export/test_rows.py::test_order [... 2210 tokens left out ...] 1 failed, 31 passed

Only the head of an entry begins with a bracket and has a bar. A line like this inside a message is indented by a blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate

from compaction.summarizing.extractive.clean_text import LONGEST_READ, clean, clip, estimate_tokens, one_line
from compaction.summarizing.summarizer import Source, SourceMessage, SourceSummary

# Maximum number of tokens of a tool's output: its beginning and end show what it was and how it ended.
MOST_OF_TOOL_OUTPUT = 1500
# Maximum number of tokens of a call: its arguments may include a whole file.
MOST_OF_CALL = 400

# A message is not cut to fewer tokens than this, because the mark for the cut would cost more than the cut saves.
_LEAST_OF_MESSAGE = 60
_COST_OF_MARK = 12
_BEGINNING = 0.6

_LONGEST_NAME = 80
_LIKE_A_HEAD = re.compile(r"^(?=\[(?:\.\.\.|[^\]\n]{0,120}\|))", re.MULTILINE)
_CALL = "[tool_call "
_CALLED = re.compile(r"^\[tool_call ([^\]\n]{1,80})\]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One source: its head, with time, role and name, and its text."""

    head: str
    body: str

    @property
    def tokens(self) -> float:
        return estimate_tokens(self.head) + estimate_tokens(self.body)

    def __str__(self) -> str:
        return f"{self.head}\n{self.body}"


def transcript(sources: Sequence[Source], *, most_tokens: int, share: float = 1.0) -> str:
    """Render the sources in order, cut to `share` of `most_tokens` or their tokens."""
    entries = [
        _of_message(source, answers=before) if isinstance(source, SourceMessage) else _of_summary(source)
        for before, source in zip([None, *sources], sources, strict=False)
    ]
    whole = sum(entry.tokens for entry in entries)
    budget = share * min(most_tokens, whole)
    if budget < whole:
        entries = list(_without_middle(_shorten(entries, budget), budget))
    return "\n".join(map(str, entries))


def cut(text: str, most_tokens: float) -> str:
    """Cut a text to `most_tokens`: its beginning, a mark for the cut, and its end."""
    encoded = text.encode(errors="replace")
    # Four bytes to a token, as in estimate_tokens.
    room = max(0, int(4 * (most_tokens - _COST_OF_MARK)))
    if estimate_tokens(text) <= most_tokens or room >= len(encoded):
        return text
    beginning = int(_BEGINNING * room)
    end = room - beginning
    left_out = (len(encoded) - room) // 4
    first = encoded[:beginning].decode(errors="ignore")
    last = encoded[len(encoded) - end :].decode(errors="ignore")
    return f"{first.rstrip()} {_mark(left_out)} {last.lstrip()}"


def _mark(tokens: float) -> str:
    return f"[... {max(1, int(tokens))} tokens left out ...]"


def _of_message(message: SourceMessage, *, answers: Source | None = None) -> Entry:
    name = message.author or (_called_in(answers) if message.role == "tool" else "")
    fields = (_time(message.time), message.role, clip(_in_head(name), _LONGEST_NAME))
    if message.role == "tool":
        body = cut(message.text, MOST_OF_TOOL_OUTPUT)
    elif _CALL in message.text:
        lines = message.text.split("\n")
        body = "\n".join(cut(line, MOST_OF_CALL) if line.startswith(_CALL) else line for line in lines)
    else:
        body = message.text
    return Entry(head=f"[{' | '.join(field for field in fields if field)}]", body=_readable(body))


def _called_in(source: Source | None) -> str:
    """Return the tool that this message calls, if exactly one, or ""."""
    calls = _CALLED.findall(source.text) if isinstance(source, SourceMessage) and source.role == "assistant" else []
    return calls[0] if len(calls) == 1 else ""


def _of_summary(summary: SourceSummary) -> Entry:
    times = dict.fromkeys(time for time in (_time(summary.earliest_at), _time(summary.latest_at)) if time)
    about = clip(_in_head(summary.about), _LONGEST_NAME) or f"messages {summary.first_seq}-{summary.last_seq}"
    fields = (" – ".join(times), f"summary of {about}")
    return Entry(head=f"[{' | '.join(field for field in fields if field)}]", body=_readable(summary.text))


def _readable(text: str) -> str:
    # A long text is cut here, with a mark; `clean` would cut it without one.
    if len(text) > LONGEST_READ:
        half = LONGEST_READ // 2 - 100
        text = f"{text[:half]} {_mark((len(text) - 2 * half) / 4)} {text[-half:]}"
    return _LIKE_A_HEAD.sub(" ", clean(text))


def _in_head(name: str) -> str:
    """Escape a name, so that it cannot end the head or look like another field."""
    return one_line(clean(name[:1000]).translate(str.maketrans("[]|", "()/")))


def _time(moment: datetime | None) -> str:
    if moment is None:
        return ""
    try:
        moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        # The first or the last day that a datetime can have.
        moment = moment.replace(tzinfo=None)
    return f"{moment.replace(tzinfo=None).isoformat(sep=' ', timespec='minutes')} UTC"


def _shorten(entries: Sequence[Entry], budget: float) -> list[Entry]:
    """Cut the longest entries to one length, so that all fit the budget together."""
    most = _even_share(sorted(entry.tokens for entry in entries), budget)
    most = max(_LEAST_OF_MESSAGE, most)
    return [
        replace(entry, body=cut(entry.body, max(most - estimate_tokens(entry.head), _COST_OF_MARK)))
        if entry.tokens > most
        else entry
        for entry in entries
    ]


def _even_share(sizes: Sequence[float], budget: float) -> float:
    """Return the length to cut the longest to, to meet the budget; `sizes` ascend."""
    for index, size in enumerate(sizes):
        if size * (len(sizes) - index) >= budget:
            return budget / (len(sizes) - index)
        budget -= size
    return sizes[-1] if sizes else 0.0


def _without_middle(entries: Sequence[Entry], budget: float) -> Iterator[Entry]:
    """Yield the first and last entries that fit, and a mark for those between."""
    if sum(entry.tokens for entry in entries) <= budget:
        yield from entries
        return
    first = _count_fitting(entries, _BEGINNING * budget)
    last = _count_fitting(entries[:first:-1], (1 - _BEGINNING) * budget)
    missing = entries[first : len(entries) - last]
    yield from entries[:first]
    yield Entry(head=f"[... {len(missing)} messages left out ...]", body=_mark(sum(entry.tokens for entry in missing)))
    yield from entries[len(entries) - last :]


def _count_fitting(entries: Sequence[Entry], budget: float) -> int:
    return sum(total <= budget for total in accumulate(entry.tokens for entry in entries))
