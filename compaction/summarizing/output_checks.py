"""From what a model answered to the text of a summary, or to the reason why it is none. Pure.

What was asked for is a summary inside a tag that nobody could know beforehand. So the envelope alone turns away nearly
every model that talks instead, or that obeys what it read; `faults` looks at what comes inside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from compaction.summarizing.extractive.clean_text import clean
from compaction.summarizing.faults import Refusal, fault_in, without_cue
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


class Rejected(Exception):
    """A model answered, and its text may not stand for the sources. The text itself is not quoted."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(f"The answer was rejected: {reason.value}.")
        self.reason = reason


def vet(answer: str, *, envelope: str, most_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """The summary in an answer, cleaned; Rejected, with the reason, if there is none that could be kept."""
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
    """Raise Rejected for a summary that says next to nothing of its sources, beside what it leaves out.

    Either it is far shorter than what it had room for, or it keeps not one of the many names that they hold.
    """
    said = without_cue(text)
    room = min(target_tokens, sum(map(count_tokens, sources)))
    is_short = not _says_anything(said) or count_tokens(said) < _LEAST_SHARE * room
    if is_short or keeps_no_name(sources, said, of_at_least=_MANY_NAMES):
        raise Rejected(Refusal.EMPTY)


def _opened(answer: str, envelope: str) -> str | None:
    """What stands between the two tags, if each is there exactly once."""
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
