"""What stands at the edges of the engine and may fail there: a model that comes and goes, a worker that dies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from compaction.engine import CompactionEngine
from compaction.llm.types import Unreachable
from compaction.summarizing.output_checks import Refusal, Rejected
from compaction.summarizing.summarizer import SummaryDraft, SummaryRequest
from conversations.store.conversations import ConversationStore
from tests.compaction.model_settings import asking_only


class Killed(BaseException):
    """The worker's process ends here. Nothing in the product catches it as it would catch a failure."""


class Mood(Enum):
    """How a model answers."""

    GOOD = auto()
    AWAY = auto()
    REJECTED = auto()
    TALKATIVE = auto()
    SILENT = auto()


@dataclass
class Model:
    """A model at the edge of the engine."""

    mood: Mood = Mood.GOOD
    answers: int = 0
    name: str = "model"

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        self.answers += 1
        if self.mood is Mood.AWAY:
            raise Unreachable("nobody answers")
        if self.mood is Mood.REJECTED:
            raise Rejected(Refusal.CHATTY)
        return SummaryDraft(text=self._text(request), model=self.name, tokens_in=100, tokens_out=10)

    def _text(self, request: SummaryRequest) -> str:
        if self.mood is Mood.SILENT:
            return " "
        if self.mood is Mood.TALKATIVE:
            return "\n".join(source.text for source in request.sources) + " And much more was said besides."
        return f"Answer {self.answers}: {request.sources[0].text[:20]}"


@dataclass
class Fuse:
    """Burns down by one at each summary, and then kills whoever holds it: before the write, or in the middle of it."""

    summaries_left: int
    in_the_middle: bool
    has_burnt: bool = False

    def burn(self) -> None:
        self.has_burnt = True
        raise Killed


@dataclass(frozen=True)
class DyingStore(ConversationStore):
    """A real store in the hands of a worker that dies while it writes a summary."""

    fuse: Fuse = field(default_factory=lambda: Fuse(0, False))

    def write_summary(self, **values: Any) -> int | None:
        self.fuse.summaries_left -= 1
        if self.fuse.summaries_left < 0 and not self.fuse.in_the_middle:
            self.fuse.burn()
        ordinal = super().write_summary(**values)
        if self.fuse.summaries_left < 0:
            self.fuse.burn()
        return ordinal


def engine_with(model: Model) -> CompactionEngine:
    """The engine as configured, but for whom it asks."""
    return asking_only(model, CompactionEngine.from_settings())


def dying(engine: CompactionEngine, fuse: Fuse) -> CompactionEngine:
    """The engine of a worker that will not live to finish."""
    return replace(engine, store=DyingStore(tokens=engine.store.tokens, policy=engine.store.policy, fuse=fuse))
