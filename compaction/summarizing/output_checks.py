"""Check a model's answer: take the summary out, or reject it. Pure.

The prompt demands the summary inside a tag with a random number, so the envelope alone rejects nearly every model that
talks instead, or obeys what it read. Then the text is searched for what no summary has: thinking aloud, talk with
somebody, orders to its reader (`answer_patterns.toml`). Quotations are not searched, nor reports of what somebody wrote
("the page asks the agent to ignore ..."). A summary that passes all the same is still marked as untrusted data.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from enum import StrEnum
from importlib import resources

from compaction.summarizing.extractive.clean_text import clean
from compaction.summarizing.retention_score import keeps_no_name

# A token of ordinary text is far shorter; beyond this there is no need to count.
_MOST_CHARACTERS_PER_TOKEN = 64
# And of an answer that is no summary, this much tells why.
_MOST_LOOKED_AT = 20_000

# Reasoning that a server left in front of the answer is no part of it.
_THOUGHT = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)

# A text has to say at least this share of what it could say: of its target, or of a source that is shorter.
_LEAST_SHARE = 0.02
# From so many distinct names on, a text that keeps none of them, nor a number or a person, is about something else.
_MANY_NAMES = 8

_ANSWER_PATTERNS = tomllib.loads((resources.files(__package__) / "answer_patterns.toml").read_text(encoding="utf-8"))


def _pattern(name: str, flags: int) -> re.Pattern[str]:
    """A pattern of the file, with its fragments filled in."""
    pattern = _ANSWER_PATTERNS[name].get("before", "") + f"(?:{'|'.join(_ANSWER_PATTERNS[name]['any'])})"
    # The last first, for each may use those before it.
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
    """Why a text is not taken for a summary."""

    EMPTY = "empty"
    NO_ENVELOPE = "no_envelope"
    REASONING = "reasoning"
    CHATTY = "chatty"
    INSTRUCTS_READER = "instructs_reader"
    TOO_LONG = "too_long"


class Rejected(Exception):
    """A model answered, and its text is no summary; the error does not quote it."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(f"The answer was rejected: {reason.value}.")
        self.reason = reason


def vet(answer: str, *, envelope: str, most_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """The summary in an answer, cleaned; Rejected, with the reason, if none."""
    if not _says_anything(answer):
        raise Rejected(Refusal.EMPTY)
    inside = _opened(answer, envelope)
    if inside is None:
        # What came instead tells more than that the tags are missing.
        raise Rejected(fault_in(clean(answer[:_MOST_LOOKED_AT])) or Refusal.NO_ENVELOPE)
    if not _says_anything(inside):
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
    """Raise Rejected for a summary that says next to nothing of its sources.

    Either it is far shorter than what it had room for, or it keeps not one of the many names that they hold.
    """
    content = without_cue(text)
    room = min(target_tokens, sum(map(count_tokens, sources)))
    is_short = not _says_anything(content) or count_tokens(content) < _LEAST_SHARE * room
    if is_short or keeps_no_name(sources, content, of_at_least=_MANY_NAMES):
        raise Rejected(Refusal.EMPTY)


def _opened(answer: str, envelope: str) -> str | None:
    """The text between the two tags, if each is there exactly once."""
    thought = _THOUGHT.match(answer)
    if thought is not None:
        answer = answer[thought.end() :]
    opening, closing = f"<{envelope}>", f"</{envelope}>"
    if answer.count(opening) != 1 or answer.count(closing) != 1:
        return None
    start = answer.index(opening) + len(opening)
    end = answer.index(closing)
    return answer[start:end] if start <= end else None


def _says_anything(text: str) -> bool:
    """Whether there is a word in it, in any script."""
    return any(map(str.isalnum, text))


def fault_in(text: str) -> Refusal | None:
    """What is wrong with the words of a text as a summary, if anything is."""
    if _REASONING_TAG.search(text) or _REASONING_START.match(text):
        return Refusal.REASONING
    if _CHATTY_START.match(text) or any(map(_CHATTY_END.match, _last_lines(text))):
        return Refusal.CHATTY
    unquoted = _QUOTED.sub('""', text)
    if _ORDER.search(unquoted) or _TURN.search(unquoted):
        return Refusal.INSTRUCTS_READER
    return None


def without_cue(text: str) -> str:
    """The text without the closing line that says what an expansion would show."""
    return "\n".join(line for line in text.split("\n") if not _CUE.match(line.lstrip("-*•# \t")))


def _last_lines(text: str) -> list[str]:
    """The last two lines that could be a farewell."""
    lines = [line for line in text.split("\n") if line.strip() and not _CUE.match(line)]
    return [line for line in lines[-2:] if not line.startswith("  ")]
