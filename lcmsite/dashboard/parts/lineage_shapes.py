"""The shapes in the picture of a lineage. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval.describing.window import WindowMessage, WindowSummary

BAND = 52


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width


@dataclass(frozen=True, kw_only=True)
class Bar(Box):
    """One summary."""

    summary: WindowSummary


@dataclass(frozen=True, kw_only=True)
class Bundle(Box):
    """Adjacent summaries of one depth that are too narrow to draw one by one."""

    depth: int
    first_seq: int
    last_seq: int
    count: int
    active: int = 0


@dataclass(frozen=True, kw_only=True)
class Stick(Box):
    """One message; its height shows its tokens."""

    message: WindowMessage


@dataclass(frozen=True)
class Stretch:
    """A range of messages, with its position in pixels."""

    first_seq: int
    last_seq: int
    x: float
    width: float


@dataclass(frozen=True)
class Mark:
    """A labelled position in the history."""

    x: float
    seq: int
    label: str


@dataclass(frozen=True)
class Row:
    """The row of one depth, or of the messages."""

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
    bottom: int
    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    bundles: tuple[Bundle, ...]
    sticks: tuple[Stick, ...]
    # The average length of a leaf's messages, if there are too many to draw.
    densities: tuple[Box, ...]
    raw: tuple[Stretch, ...]
    tail: Stretch | None
    gaps: tuple[Stretch, ...]
    # Ranges of messages off the active path.
    off: tuple[Stretch, ...]
    boundaries: tuple[Mark, ...]
    ticks: tuple[Mark, ...]
    frontier: str

    @property
    def band_y(self) -> int:
        """The upper edge of the shaded ranges of messages."""
        return self.bottom - BAND
