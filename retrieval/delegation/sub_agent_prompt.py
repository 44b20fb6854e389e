"""The prompts of a sub-agent: what it may do, what it was asked, and what it has read so far. Pure.

What others said goes out between tags that hold a number drawn for this one turn, so nothing that was said can close
them; the texts of the templates are filled in once, and what they are filled with is never a template.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from compaction.llm.types import Prompt
from compaction.summarizing.extractive.clean_text import clean
from retrieval.delegation.types import GrantRecord, GrantState

TEMPLATES = Path(__file__).resolve().parents[2] / "templates" / "retrieval"

_LAST_TURN = 'This is your last turn: answer now with the action "answer", from what you have read.'
_NO_TOKENS = 'You may read no more: answer now with the action "answer", from what you have read.'
_ANOTHER = "What is your next action?"


@dataclass(frozen=True)
class Turn:
    """An action, as it was understood, and what came of it."""

    action: str
    outcome: str


def turn_prompt(
    *,
    question: str,
    items: Sequence[str],
    turns: Sequence[Turn],
    turns_left: int,
    grant: GrantRecord,
    answer_tokens: int,
    nonce: str | None = None,
) -> Prompt:
    """What to ask for the next action; the nonce is drawn unless a test gives one."""
    nonce = nonce or secrets.token_hex(8)
    tag = f"data-{nonce}"

    def harmless(text: str) -> str:
        # Nobody can know the nonce; but if it should be there, it is there no longer.
        return re.sub(re.escape(nonce), "(number)", clean(text), flags=re.IGNORECASE)

    def described(turn: Turn) -> str:
        # What the model wrote itself may quote somebody else.
        return (
            f"\nYou asked:\n<{tag}>\n{harmless(turn.action)}\n</{tag}>\n"
            f"and were shown:\n<{tag}>\n{harmless(turn.outcome)}\n</{tag}>\n"
        )

    may_read = grant.state is GrantState.ACTIVE
    now = _LAST_TURN if turns_left <= 1 else _ANOTHER if may_read else _NO_TOKENS
    return Prompt(
        system=_template("_sub_agent").substitute(tag=tag, answer_tokens=answer_tokens),
        user=_template("_sub_agent_turn").substitute(
            tag=tag,
            question_tag=f"question-{nonce}",
            question=harmless(question),
            items=harmless("\n".join(items)),
            depth=grant.depth,
            steps="".join(map(described, turns)),
            turns=turns_left,
            tokens=grant.tokens_left if may_read else 0,
            now=now,
        ),
    )


@cache
def _template(name: str) -> Template:
    return Template((TEMPLATES / f"{name}.txt").read_text(encoding="utf-8"))
