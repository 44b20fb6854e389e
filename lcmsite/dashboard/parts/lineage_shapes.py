"""The shapes in the picture of the lineage, as `layout` places them and `drawing` draws them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.types import Role
from retrieval.describing.window_types import WindowSummary

BAND = 52
# From so many pixels on a bar has room for words.
ROOM_FOR_WORDS = 64


@dataclass(frozen=True)
class Bar:
    """One summary."""

    summary: WindowSummary
    x: float
    y: float
    width: float
    height: float
    # From 0, little, to 3: how much of what could be lost it still says; -1 where nothing could be.
    retention: int

    @property
    def words_at(self) -> tuple[float, float] | None:
        """Where words begin in it; None if it has no room for any."""
        return (self.x + 5, self.y + self.height - 4) if self.width >= ROOM_FOR_WORDS else None


@dataclass(frozen=True)
class Bundle:
    """Summaries of one depth side by side that are too narrow to be told apart; zooming in does."""

    depth: int
    first_seq: int
    last_seq: int
    count: int
    active: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Stick:
    """One message, as tall as it has tokens."""

    message_id: int
    seq: int
    role: Role
    tokens: int
    raw: bool
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Stretch:
    """Messages that follow each other, drawn as one piece."""

    first_seq: int
    last_seq: int
    x: float
    width: float


@dataclass(frozen=True)
class Density:
    """How long the messages are that a leaf was made from, where they are too many to be drawn one by one."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Mark:
    """A place in the history with a name."""

    x: float
    seq: int
    label: str


@dataclass(frozen=True)
class Row:
    """One depth."""

    depth: int
    y: float
    label: str

    @property
    def label_y(self) -> float:
        return self.y - 6


@dataclass(frozen=True)
class Picture:
    """All shapes, in the order in which they are drawn. `bottom` is the line on which messages stand."""

    width: int
    height: int
    left: int
    right: int
    bottom: float
    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    bundles: tuple[Bundle, ...]
    sticks: tuple[Stick, ...]
    densities: tuple[Density, ...]
    raw: tuple[Stretch, ...]
    tail: Stretch | None
    gaps: tuple[Stretch, ...]
    boundaries: tuple[Mark, ...]
    ticks: tuple[Mark, ...]
    frontier: str

    @property
    def messages(self) -> Row:
        """The row at the bottom."""
        return Row(depth=-1, y=self.bottom, label="Messages")

    @property
    def tick_y(self) -> float:
        return self.bottom + 18

    @property
    def band_y(self) -> float:
        """From here to the bottom stretches of messages are shaded."""
        return self.bottom - BAND
