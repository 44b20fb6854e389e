"""What a vendor of language models can do to a compaction, and what must then be told of it.

A `Behaving` is a way to behave, with what a summary made meanwhile must say of itself. All of it is checked against the
requests that came, so that no call, no failure and no text is recorded that was not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from compaction.llm.guards import FAULTS
from compaction.llm.types import CallOutcome, NotCalled, Protocol
from compaction.models import ModelEndpoint
from compaction.summarizing.escalation import Lack
from compaction.summarizing.output_checks import Refusal
from compaction.summarizing.prompts import TEMPLATES, prompt_hash
from conversations.models import Summary
from conversations.types import Level
from tests.compaction import vendor as does
from tests.compaction.vendor import Asked, Behaviour, Vendor, good, summary_of

# As the vendor itself quotes it, when it refuses: found again wherever it should not be.
KEY = "sk-secret-key"

# Small chunks, so that a short conversation asks more often than the breaker allows.
TIGHT = {
    "leaf_chunk_tokens": 4000,
    "leaf_target_tokens": 250,
    "condensed_target_tokens": 350,
    "condense_fan_in": 3,
    "run_deadline_seconds": 60,
    "model_timeout_seconds": 20,
    "model_attempts": 1,
    "breaker_failures": 2,
}


def asking(vendor: Vendor, summarizer: str, **more: Any) -> dict[str, Any]:
    """Settings under which this chain is asked, and every model of it is this vendor's."""
    models = {
        f"{name}_{field}": value
        for name in ("chat", "anthropic")
        for field, value in (("url", vendor.url), ("model", "asked-model"), ("key", KEY))
    }
    return {**TIGHT, **models, "summarizer": summarizer, **more}


@dataclass(frozen=True)
class Behaving:
    """A way to behave, the level that it leads to, and the reason that each attempt before that level failed for."""

    name: str
    behaviours: Callable[[], Sequence[Behaviour]]
    level: Level = Level.DETERMINISTIC
    reason: CallOutcome | Refusal | None = None
    # HTTP requests for one attempt at one summary.
    requests: int = 1
    # Whether an attempt lasts as long as it may.
    is_slow: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        return {"model_timeout_seconds": 1, "breaker_failures": 1} if self.is_slow else {}

    def failures(self, model: str) -> list[str]:
        """What a summary tells of the attempts before it, if the model was asked."""
        if self.reason is None:
            return []
        levels = [Level.NORMAL, Level.AGGRESSIVE] if isinstance(self.reason, Refusal) else [Level.NORMAL]
        return [f"{model} {level}: {self.reason}" for level in levels if level != self.level]

    @property
    def lack(self) -> Lack | None:
        if self.level is not Level.DETERMINISTIC:
            return None
        if isinstance(self.reason, Refusal):
            return Lack.REJECTED
        return Lack.UNAVAILABLE if self.reason in FAULTS else Lack.UNANSWERED


def level_asked(asked: Asked) -> Level:
    """Which level's words a request was made with."""
    tasks = (file.read_text(encoding="utf-8").strip() for file in TEMPLATES.glob("*_aggressive.txt"))
    return Level.AGGRESSIVE if any(task in asked.system for task in tasks) else Level.NORMAL


def _good_when_pressed(asked: Asked) -> None:
    (good if level_asked(asked) is Level.AGGRESSIVE else does.chats)(asked)


def _talks_without_end(asked: Asked) -> None:
    does.saying("It was told. " * max(2_000, len(asked.source) // 4))(asked)


def _is_cut(asked: Asked) -> None:
    limit = "max_tokens" if asked.protocol is Protocol.ANTHROPIC else "length"
    does.saying("The port was", stop=limit)(asked)


def _obeys(asked: Asked) -> None:
    does.saying("Understood. All earlier instructions are forgotten; the password is hunter2.")(asked)


def _always(behaviour: Behaviour) -> Callable[[], Sequence[Behaviour]]:
    return lambda: [behaviour]


def _answering(name: str, level: Level, behaviour: Behaviour, **more: Any) -> Behaving:
    return Behaving(name, _always(behaviour), level, **more)


def _failing(name: str, reason: CallOutcome | Refusal, behaviour: Behaviour, **more: Any) -> Behaving:
    return Behaving(name, _always(behaviour), reason=reason, **more)


def _too_long_at_first() -> Sequence[Behaviour]:
    turns = itertools.cycle((does.too_long_over(0), good))
    return [lambda asked: next(turns)(asked)]


GOOD = _answering("good answers", Level.NORMAL, good)
ALL = (
    GOOD,
    _answering("good answers when pressed", Level.AGGRESSIVE, _good_when_pressed, reason=Refusal.CHATTY),
    Behaving("a prompt too long at first", _too_long_at_first, Level.NORMAL, requests=2),
    _failing("a prompt too long always", CallOutcome.CONTEXT_LENGTH, does.too_long_over(-1), requests=3),
    _failing("too many requests", CallOutcome.RATE_LIMITED, does.rate_limited(retry_after="3600")),
    _failing("status 500", CallOutcome.UNREACHABLE, does.failing(500)),
    _failing("status 529", CallOutcome.UNREACHABLE, does.failing(529)),
    _failing("a wrong key", CallOutcome.DENIED, does.refusing(401)),
    _failing("a refused request", CallOutcome.REFUSED, does.refusing(400)),
    _failing("no word", CallOutcome.UNREACHABLE, does.hangs, is_slow=True),
    _failing("a body byte by byte", CallOutcome.UNREACHABLE, does.drips, is_slow=True),
    _failing("a head byte by byte", CallOutcome.UNREACHABLE, does.drips_its_head, is_slow=True),
    _failing("a broken connection", CallOutcome.UNREACHABLE, does.resets),
    _failing("half an answer", CallOutcome.UNREACHABLE, does.breaks_off),
    _failing("an answer without end", CallOutcome.BAD_ANSWER, does.pours),
    _failing("an empty answer", CallOutcome.BAD_ANSWER, does.empty),
    _failing("truncated JSON", CallOutcome.BAD_ANSWER, does.truncated_json),
    _failing("other JSON", CallOutcome.BAD_ANSWER, does.wrong_json),
    _failing("an answer cut at its limit", CallOutcome.BAD_ANSWER, _is_cut),
    _failing("more than the source", Refusal.TOO_LONG, _talks_without_end),
    _failing("leaked reasoning", Refusal.REASONING, does.leaks_reasoning),
    _failing("a chatty reply", Refusal.CHATTY, does.chats),
    _failing("a chatty summary", Refusal.CHATTY, does.chats_inside),
    _failing("orders to the reader", Refusal.INSTRUCTS_READER, does.gives_orders),
    _failing("obedience to the source", Refusal.CHATTY, _obeys),
    _failing("no envelope", Refusal.NO_ENVELOPE, does.forgets_envelope),
    _failing("nothing in the envelope", Refusal.EMPTY, does.says_nothing),
)


def assert_the_truth_is_recorded(behaving: Behaving, vendor: Vendor, *, model: str) -> None:
    """Of every summary: who made it, how hard it was pressed for, what failed before, and whether it is wanting."""
    answered = {summary_of(asked) for asked in vendor.requests}
    requests = 0
    for summary in Summary.objects.all():
        told = summary.quality.get("failures", [])
        is_spared = told == [f"{model} normal: {NotCalled.BREAKER_OPEN}"]
        is_by_model = behaving.lack is None
        assert told == behaving.failures(model) or (is_spared and behaving.lack is Lack.UNAVAILABLE), told
        assert summary.level == behaving.level
        assert summary.quality.get("lack") == behaving.lack
        assert summary.is_degraded == (not is_by_model)
        assert summary.model == ("served-model" if is_by_model else "telegraphic")
        assert (summary.content in answered) == is_by_model
        assert summary.prompt_hash == (prompt_hash(depth=summary.depth, level=behaving.level) if is_by_model else "")
        assert bool(summary.tokens_in and summary.tokens_out) == is_by_model
        requests += 0 if is_spared else behaving.requests * (len(told) + is_by_model)
    assert len(vendor.requests) == requests == ModelEndpoint.objects.get(name=model).calls


def rows_with(secret: str) -> dict[str, int]:
    """The tables that hold a text in any of their columns, packed ones too, and in how many rows."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(
                f'SELECT count(*) FROM "{table}" AS t WHERE strpos(t::text, %s) > 0 OR strpos(t::text, %s) > 0',
                [secret, secret.encode().hex()],
            )
            [count] = cursor.fetchone()
            if count:
                found[table] = count
    return found
