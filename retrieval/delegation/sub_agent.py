"""Let a language model read under a grant, for a few turns and a limited time.

No database transaction is open during a model call. The model's actions can only read; it cannot delegate. In the
prompt, stored texts are between tags. Each turn has new tags with a random number, so that no stored text can contain a
closing tag. Templates are filled only once, so placeholders inside a stored text are not replaced.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import Template

from compaction.llm.client import ModelClient
from compaction.llm.types import ModelFailed, Prompt
from compaction.summarizing.extractive.clean_text import clean, clip, fit
from conversations.errors import LcmError
from retrieval.delegation.actions import Finish, NotAnAction, action_in, as_json
from retrieval.delegation.granted import GrantedReader
from retrieval.delegation.types import Ending, GrantRecord, GrantState, QueryStep
from retrieval.policy import RetrievalPolicy

TEMPLATES = Path(__file__).resolve().parents[2] / "templates" / "retrieval"

_LAST_TURN = 'This is your last turn: answer now with the action "answer", from what you have read.'
_NO_TOKENS = 'You may read no more: answer now with the action "answer", from what you have read.'
_ANOTHER = "What is your next action?"
# The work ends after this many replies in a row without a valid action.
MOST_MISUNDERSTOOD = 3
_SHOWN_OF_A_REPLY = 300

_TAKEN_BACK = {GrantState.REVOKED: Ending.GRANT_REVOKED, GrantState.EXPIRED: Ending.GRANT_EXPIRED}


@dataclass(frozen=True)
class AgentStep:
    """An action of the model, and the result that it got."""

    action: str
    outcome: str


@dataclass
class Work:
    """The work of a sub-agent: its steps, its answer, and how it ended."""

    ending: Ending = Ending.OUT_OF_TURNS
    answer: str | None = None
    cited: tuple[str, ...] = ()
    model: str | None = None
    failure: str | None = None
    steps: list[QueryStep] = field(default_factory=list)

    def ended(self, ending: Ending) -> Work:
        self.ending = ending
        return self


@dataclass(frozen=True)
class SubAgent:
    """A language model, and the reader that carries out its actions."""

    client: ModelClient
    reader: GrantedReader

    @property
    def policy(self) -> RetrievalPolicy:
        """The limits on the number of turns, the time and the length of the answer."""
        return self.reader.engine.policy

    def look_into(self, question: str, items: Sequence[str]) -> Work:
        """Have the model work on a question; return its answer or why there is none."""
        work, turns = Work(), list[AgentStep]()
        until = self.client.clock() + self.policy.query_seconds
        for left in range(self.policy.query_turns, 0, -1):
            grant = self.reader.grants.get_grant(grant_id=self.reader.grant.grant_id)
            if grant.state in _TAKEN_BACK:
                # Without a valid grant, the texts that were read may not be used for an answer.
                return work.ended(_TAKEN_BACK[grant.state])
            work.ending = Ending.OUT_OF_TURNS if grant.state is GrantState.ACTIVE else Ending.GRANT_EXCEEDED
            prompt = self._prompt(question, items, turns, turns_left=left, grant=grant)
            try:
                reply = self.client.complete(prompt, deadline=until)
            except ModelFailed as failed:
                work.failure = failed.reason.value
                return work.ended(Ending.OUT_OF_TIME if self.client.clock() >= until else Ending.MODEL_FAILED)
            work.model = reply.model
            turn = self._taken(reply.text, work)
            if turn is None:
                return work
            turns.append(turn)
            if self.client.clock() >= until:
                return work.ended(Ending.OUT_OF_TIME)
        return work

    def _taken(self, reply: str, work: Work) -> AgentStep | None:
        """Carry out the action of a reply; return None if it ends the work."""
        try:
            action = action_in(reply)
        except NotAnAction as wrong:
            work.steps.append(QueryStep("", "", 0, refusal=Ending.NOT_UNDERSTOOD))
            last = work.steps[-MOST_MISUNDERSTOOD:]
            if len(last) == MOST_MISUNDERSTOOD and all(step.refusal == Ending.NOT_UNDERSTOOD for step in last):
                work.ending = Ending.NOT_UNDERSTOOD
                return None
            return AgentStep(clip(reply, _SHOWN_OF_A_REPLY), str(wrong))
        if isinstance(action, Finish):
            work.answer = fit(clean(action.answer), self.policy.query_answer_tokens, self.reader.engine.tokens.count)
            work.cited = action.cited
            work.ending = Ending.ANSWERED if action.complete else Ending.INCOMPLETE
            return None
        try:
            read = self.reader.read(action)
        except LcmError as refusal:
            work.steps.append(QueryStep(action.name, action.about, 0, refusal=refusal.code))
            return AgentStep(as_json(action), f"{refusal.code}: {refusal.detail}")
        work.steps.append(QueryStep(action.name, action.about, read.tokens))
        return AgentStep(as_json(action), read.text)

    def _prompt(
        self, question: str, items: Sequence[str], turns: Sequence[AgentStep], *, turns_left: int, grant: GrantRecord
    ) -> Prompt:
        """Build the prompt for the next action; put each text between new random tags."""
        nonce = secrets.token_hex(8)
        tag = f"data-{nonce}"

        def harmless(text: str) -> str:
            # A stored text cannot know the nonce. If it contains the nonce by chance, the nonce is replaced there.
            return re.sub(re.escape(nonce), "(number)", clean(text), flags=re.IGNORECASE)

        def described(turn: AgentStep) -> str:
            # The model's own actions are also between tags, because they may quote stored texts.
            return (
                f"\nYou asked:\n<{tag}>\n{harmless(turn.action)}\n</{tag}>\n"
                f"and were shown:\n<{tag}>\n{harmless(turn.outcome)}\n</{tag}>\n"
            )

        may_read = grant.state is GrantState.ACTIVE
        now = _LAST_TURN if turns_left <= 1 else _ANOTHER if may_read else _NO_TOKENS
        return Prompt(
            system=_template("_sub_agent").substitute(tag=tag, answer_tokens=self.policy.query_answer_tokens),
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
