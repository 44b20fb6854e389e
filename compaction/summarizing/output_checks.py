"""Extract the summary from a model's answer, or reject the answer. Pure.

The prompt demands the summary inside a tag with a random number, the envelope. This alone rejects nearly every answer
of a model that chats, or that obeys the text it read. Then the text is searched for things that no summary contains:
reasoning, chat, and orders to its reader (`answer_patterns.toml`). Quotations and reports of what somebody wrote ("the
page asks the agent to ignore ...") are not matched. Even an accepted summary is marked as untrusted data.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from enum import StrEnum
from importlib import resources

from compaction.summarizing.extractive.clean_text import clean
from compaction.summarizing.retention_score import keeps_no_name

# A token of ordinary text has far fewer characters; longer texts are too long without counting.
_MOST_CHARACTERS_PER_TOKEN = 64
# Maximum number of characters of an answer without envelope that are searched for the reason.
_MOST_LOOKED_AT = 20_000

# Reasoning that a server left before the answer. It is removed.
_THOUGHT = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)

# The minimum length of a summary, as a share of its target, or of its sources if they are shorter.
_LEAST_SHARE = 0.02
# If the sources have this many distinct names, a text without any of their facts is about something else.
_MANY_NAMES = 8

_ANSWER_PATTERNS = tomllib.loads((resources.files(__package__) / "answer_patterns.toml").read_text(encoding="utf-8"))


def _pattern(name: str, flags: int) -> re.Pattern[str]:
    """Compile a named pattern of the file of patterns, with its named fragments."""
    pattern = _ANSWER_PATTERNS[name].get("before", "") + f"(?:{'|'.join(_ANSWER_PATTERNS[name]['any'])})"
    # In reverse order, because each fragment may use the fragments before it.
    for fragment, text in reversed(_ANSWER_PATTERNS["fragments"].items()):
        pattern = pattern.replace(f"{{{fragment}}}", text)
    return re.compile(pattern, flags)


_REASONING_TAG = _pattern("reasoning_tag", re.MULTILINE | re.IGNORECASE)
_REASONING_START = _pattern("reasoning_start", re.IGNORECASE)
_CHATTY_START = _pattern("chatty_start", re.IGNORECASE)
_CHATTY_END = _pattern("chatty_end", re.IGNORECASE)
_QUOTED = _pattern("quoted", re.DOTALL)
_ORDER = _pattern("order", re.MULTILINE | re.IGNORECASE)
_TURN = _pattern("turn", re.MULTILINE)
_CUE = re.compile(r"expand for details", re.IGNORECASE)


class Refusal(StrEnum):
    """Why a text is not accepted as a summary."""

    EMPTY = "empty"
    NO_ENVELOPE = "no_envelope"
    REASONING = "reasoning"
    CHATTY = "chatty"
    INSTRUCTS_READER = "instructs_reader"
    TOO_LONG = "too_long"


class Rejected(Exception):
    """A model's answer is not a summary; the error does not quote the answer."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(f"The answer was rejected: {reason.value}.")
        self.reason = reason


def vet(answer: str, *, envelope: str, most_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """Return the summary in an answer, cleaned; raises Rejected, with the reason."""
    if not _has_words(answer):
        raise Rejected(Refusal.EMPTY)
    inside = _text_in_envelope(answer, envelope)
    if inside is None:
        # A fault in the text is a more useful reason than the missing tags.
        raise Rejected(fault_in(clean(answer[:_MOST_LOOKED_AT])) or Refusal.NO_ENVELOPE)
    if not _has_words(inside):
        raise Rejected(Refusal.EMPTY)
    if len(inside) > _MOST_CHARACTERS_PER_TOKEN * most_tokens:
        raise Rejected(Refusal.TOO_LONG)
    text = clean(inside).strip()
    fault = fault_in(text)
    if fault is not None:
        raise Rejected(fault)
    if count_tokens(text) > most_tokens:
        raise Rejected(Refusal.TOO_LONG)
    return text


def require_substance(
    text: str, *, sources: Sequence[str], target_tokens: int, count_tokens: Callable[[str], int]
) -> None:
    """Raise Rejected for a summary that contains almost nothing of its sources.

    Such a summary is far shorter than its target, or it keeps no fact of sources with many names.
    """
    content = without_cue(text)
    room = min(target_tokens, sum(map(count_tokens, sources)))
    is_short = not _has_words(content) or count_tokens(content) < _LEAST_SHARE * room
    if is_short or keeps_no_name(sources, content, of_at_least=_MANY_NAMES):
        raise Rejected(Refusal.EMPTY)


def _text_in_envelope(answer: str, envelope: str) -> str | None:
    """Return the text between the two tags; None unless each is there exactly once."""
    thought = _THOUGHT.match(answer)
    if thought is not None:
        answer = answer[thought.end() :]
    opening, closing = f"<{envelope}>", f"</{envelope}>"
    if answer.count(opening) != 1 or answer.count(closing) != 1:
        return None
    start = answer.index(opening) + len(opening)
    end = answer.index(closing)
    return answer[start:end] if start <= end else None


def _has_words(text: str) -> bool:
    """Whether the text has a letter or digit, in any script."""
    return any(map(str.isalnum, text))


def fault_in(text: str) -> Refusal | None:
    """Return the fault of a text that is not a summary, or None."""
    if _REASONING_TAG.search(text) or _REASONING_START.match(text):
        return Refusal.REASONING
    if _CHATTY_START.match(text) or any(map(_CHATTY_END.match, _last_lines(text))):
        return Refusal.CHATTY
    unquoted = _QUOTED.sub('""', text)
    if _ORDER.search(unquoted) or _TURN.search(unquoted):
        return Refusal.INSTRUCTS_READER
    return None


def without_cue(text: str) -> str:
    """Remove the closing line, "Expand for details about: ..."."""
    return "\n".join(line for line in text.split("\n") if not _CUE.match(line.lstrip("-*•# \t")))


def _last_lines(text: str) -> list[str]:
    """Return the last two lines, where chat may end; without indented lines."""
    lines = [line for line in text.split("\n") if line.strip() and not _CUE.match(line)]
    return [line for line in lines[-2:] if not line.startswith("  ")]
