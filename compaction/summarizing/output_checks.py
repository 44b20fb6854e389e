"""Check a model's answer: take the summary out, or reject it. Pure.

The prompt demands the summary inside a tag with a random number, so the envelope alone rejects nearly every model that
talks instead, or obeys what it read. Then the text is searched for what no summary has: thinking aloud, talk with
somebody, orders to its reader. Each pattern looks only where its fault shows (how a text begins or ends, how a sentence
begins) and for few words, because a true summary of a talk about such faults must pass: what is quoted is not searched,
nor what is reported ("the page told the agent to ignore ..."). What slips through is still marked as untrusted data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum

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


def _either(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


# A line that begins with such a tag, or with a mark of a model's own format, is thinking, not content. Inside a
# sentence it is what the sentence is about.
_REASONING_TAG = re.compile(
    r"^[ \t]*(?:</?(?:think|thinking|reasoning|analysis|scratchpad|reflection)>|<\|(?:channel|start)\|>)",
    re.MULTILINE | re.IGNORECASE,
)

# How thinking aloud begins. Only at the very beginning: later on, "we need to" may be a quotation.
_MAKE_SUMMARY = (
    r"(?:(?:summari[sz]e|condense|compress)\b|(?:produce|write|create|craft|output|make)\b[^.\n]{0,30}summar)"
)
_REASONING_START = re.compile(
    r"\W*"
    + _either(
        r"(?:(?:ok(?:ay)?|alright|hmm+|so|right|well)[,.!]* )*(?:let me|let's|let us) (?:think|start|begin|see"
        r"|analy[sz]e|go through|review|re-?read|read|look|break|work|count|summari[sz]e|draft)",
        r"(?:ok(?:ay)?|alright|hmm+)[,.]+ (?:so|i|we|the|this|first|now)\b",
        r"(?:(?:first|now|so|next)[,.]* )*(?:i|we) (?:need to|have to|should|must|want to|am going to|are going to) "
        + _MAKE_SUMMARY,
        r"the user (?:wants|asks|is asking|would like) (?:me|us|for a summary|a summary of (?:this|the) conv)",
        r"the (?:task|prompt|system prompt|instructions?) (?:says?|tells?|wants?|asks?|requires?) (?:me|us|that i)\b",
        r"(?:my |the )?(?:thinking|thought|reasoning) process\b",
        r"(?:analysis|reasoning|thoughts?|scratchpad|chain of thought)\W{0,3}:",
    ),
    re.IGNORECASE,
)

# How an answer begins, which a summary is not: a nod to the task, an offer, a refusal, an apology. In some of
# the languages that models fall into, and always with what makes it an answer: the comma, the word "summary".
_CHATTY_START = re.compile(
    r"\W*"
    + _either(
        r"(?:sure|certainly|of course|absolutely|gladly|understood|got it|no problem|great question)(?: thing)?[,.!:]",
        r"(?:here is|here's|here are|below is) (?:a|an|the|your|my) (?:[\w-]+ ){0,3}"
        r"(?:summary|recap|overview|digest|condensed|bullet)",
        r"i(?:'d| would) be (?:happy|glad|delighted)",
        r"i(?:'m| am) (?:happy|glad|sorry|unable|afraid|not able|ready)\b",
        r"i (?:cannot|can't|can not|won't|will not|apologi[sz]e|don't have|do not have|don't see|do not see)\b",
        r"i(?:'ll| will|'m going to| am going to) \w+",
        r"(?:sorry|apologies)[,.!]",
        r"as an ai\b",
        r"thanks?(?: you)? for\b",
        r"(?:hello|hi|hey)(?: there)?[,.!]",
        r"(?:natürlich|gerne|selbstverständlich|klar|claro|por supuesto|bien sûr|certo|конечно)[,.!]",
        r"(?:hier ist|voici|aquí (?:está|tienes)|ecco|вот) (?:(?:eine|die|un|le|la|el|il) )?(?:[\w-]+ )?"
        r"(?:zusammenfassung|résumé|resumen|riassunto|резюме)",
        r"(?:当然|好的|没问题)[，,！!。]",
        r"(?:もちろん|承知しました|かしこまりました)",
    ),
    re.IGNORECASE,
)

# How one who answers takes leave, at the beginning of one of the last lines.
_CHATTY_END = re.compile(
    r"[-*\s]*"
    + _either(
        r"(?:would you like|do you want|shall i|should i|may i) (?:me|to|proceed|continue|go|do|make|add|also)\b",
        r"(?:please )?let me know (?:if|whether|what|when|how|which)\b",
        r"(?:please )?feel free to\b",
        r"is there anything else\b",
        r"(?:how|what else) can i (?:help|do|assist)\b",
        r"(?:could|can) you (?:please )?(?:provide|share|clarify|confirm|tell me|paste)\b",
        r"i hope this helps\b",
    ),
    re.IGNORECASE,
)
_CUE = re.compile(r"expand for details", re.IGNORECASE)

# What is quoted is reported. But for blocks of code a quotation ends with its line, so that a stray mark hides no more.
_QUOTED = re.compile(
    r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」|『[^』\n]*』|‘[^’\n]*’"
    r"|(?<!\w)'[^'\n]*'(?!\w)",
    re.DOTALL,
)

# An order begins a sentence, or follows a label that does. "The page said to ignore ..." is neither.
_BEFORE = r"(?:^[ \t]*(?:[-*•#>]+[ \t]*)?|(?<=[.!?])[ \t]+|(?<=[。！？]))"
_READER = r"(?:agent|assistant|ai|model|reader|llm)"
_LABEL = (
    rf"(?:\W{{0,4}}(?:important|attention|warning|urgent|critical|system|notice|note|instructions?|to the {_READER}"
    rf"|{_READER})(?: (?:notice|note|message|prompt|override|instructions?|update|to (?:the )?{_READER}))?"
    r"\W{0,4}[:!,]\W{0,4})"
)
_ADVERB = r"(?:(?:please|now|then|first|immediately|just|also|and|you must|you should|you have to|you need to),? )"
_OF_THE = r"(?:(?:all|any|every|the|your|of|these|those|my) )*"
_RULES = r"(?:instructions?|prompts?|messages?|rules|guidelines|directives|directions|context|orders|commands)"
_WHAT_WAS_SAID = _OF_THE + _either(
    rf"(?:previous|prior|above|earlier|preceding|foregoing|existing|former|other) {_OF_THE}{_RULES}",
    rf"{_RULES} (?:above|before|so far)",
    rf"(?<=your ){_RULES}",
    r"(?<!\w)everything (?:above|before)",
)
_DO_AT_ONCE = (
    r"(?:run|execute|call|invoke|delete|remove|send|post|upload|forward|email|reveal|print|output|fetch|download|open"
    r"|visit|install|follow|obey|respond|reply|answer|act|pretend|do not|don't|never|always|you must|you should"
    r"|you have to|you need to|ignore|disregard|forget)\b"
)
_ORDER = re.compile(
    _BEFORE
    + _either(
        # To ignore the reader's instructions.
        rf"{_LABEL}?{_ADVERB}{{0,3}}(?:ignore|disregard|forget|override|bypass|discard) {_WHAT_WAS_SAID}",
        # To play another role, or to have another task.
        rf"{_LABEL}?you (?:must|shall|will) now\b",
        rf"{_LABEL}?you are now (?:a|an|the|in|dan|free|no longer)\b",
        rf"{_LABEL}?from now on,? (?:you|always|never|only|respond|reply|answer|ignore|act)\b",
        rf"{_LABEL}?your (?:new|next|only|real|actual) (?:task|instructions?|role|goal|objective|job|mission|orders?)"
        r" (?:is|are)\b",
        r"new (?:system )?instructions?:",
        # To do something; only with a label, for without one it may be a note.
        rf"{_LABEL}{_ADVERB}{{0,3}}{_DO_AT_ONCE}",
        # To ignore the reader's instructions, in other languages.
        r"(?:bitte )?(?:ignoriere?|vergiss)\w* (?:alle|die|sämtliche)?\s?(?:vorherigen|bisherigen|obigen|früheren)\b",
        r"(?:ignora|olvida)\w* (?:todas )?(?:las )?(?:instrucciones|indicaciones) (?:anteriores|previas)",
        r"(?:ignore[zr]?|oublie[zr]?) (?:toutes )?(?:les )?(?:instructions|consignes) (?:précédentes|antérieures)",
        r"(?:игнорируй|забудь)\w* (?:все )?(?:предыдущие|прежние)",
        r"请?(?:忽略|无视)(?:所有|全部)?(?:之前|以上|先前|上述|前面)",
        r"(?:以前|これまで|上記|前)の(?:すべての)?(?:指示|命令|プロンプト)を(?:すべて)?無視(?:して|せよ|しろ)",
    ),
    re.MULTILINE | re.IGNORECASE,
)
# The marks of chat templates for a new turn: a reader's own server might take them for one.
_TURN = re.compile(r"<\|(?:im_start|im_end|system|user|assistant|end_of_turn)\|>|^\[/?INST\]", re.MULTILINE)
