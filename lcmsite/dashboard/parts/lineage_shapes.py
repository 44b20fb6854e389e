"""The shapes in the picture of a lineage. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.types import Role
from retrieval.describing.window import WindowSummary

BAND = 52
# Minimum width of a bar with a label, in pixels.
ROOM_FOR_WORDS = 64


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, kw_only=True)
class Bar(Box):
    """One summary."""

    summary: WindowSummary
    # How many identifiers it kept, from 0 (few) to 3; -1 where its sources had none.
    retention: int

    @property
    def words_at(self) -> tuple[float, float] | None:
        """The position of the label; None if there is no room."""
        return (self.x + 5, self.y + self.height - 4) if self.width >= ROOM_FOR_WORDS else None


@dataclass(frozen=True, kw_only=True)
class Bundle(Box):
    """Adjacent summaries of one depth that are too narrow to draw one by one."""

    depth: int
    first_seq: int
    last_seq: int
    count: int
    active: int


@dataclass(frozen=True, kw_only=True)
class Stick(Box):
    """One message; its height shows its tokens."""

    message_id: int
    seq: int
    role: Role
    tokens: int
    raw: bool


@dataclass(frozen=True)
class Stretch:
    """A range of messages."""

    first_seq: int
    last_seq: int
    x: float
    width: float


class Density(Box):
    """The average length of a leaf's messages, where they are too many to draw."""


@dataclass(frozen=True)
class Mark:
    """A labelled position in the history."""

    x: float
    seq: int
    label: str


@dataclass(frozen=True)
class Row:
    """The row of one depth."""

    depth: int
    y: float
    label: str

    @property
    def label_y(self) -> float:
        return self.y - 6


@dataclass(frozen=True)
class Picture:
    """All shapes in drawing order; `bottom` is the base line of the messages."""

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
        """The row of the messages, at the bottom."""
        return Row(depth=-1, y=self.bottom, label="Messages")

    @property
    def tick_y(self) -> float:
        return self.bottom + 18

    @property
    def band_y(self) -> float:
        """The upper edge of the shaded ranges of messages."""
        return self.bottom - BAND
