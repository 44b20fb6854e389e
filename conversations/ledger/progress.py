"""How far a ledger has come, for whoever writes it, continues it or verifies it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from conversations.ledger.lines import body_of, line_hash_of, line_of
from conversations.ledger.types import Line, Tally

# Of which lines the tally counts which number.
COUNTED = {
    "message": "messages",
    "part": "parts",
    "summary": "summaries",
    "run": "runs",
    "boundary": "boundaries",
    "file": "files",
    "reference": "references",
}
_ONE = {kind: Tally(**{name: 1}) for kind, name in COUNTED.items()}


@dataclass(frozen=True)
class Place:
    """How far a ledger has come: what the next line, and those that count, must know."""

    line_hash: str = ""
    lines: int = 0
    conversations: int = 0
    counts: Tally = Tally()
    # Of the conversation that is not at its end yet.
    session_id: str | None = None
    counts_of_it: Tally = Tally()
    seq: int = 0

    def behind(self, values: Line, line_hash: str) -> Place:
        """The place behind one more line."""
        kind = values["type"]
        here = replace(self, line_hash=line_hash, lines=self.lines + 1)
        if kind == "conversation":
            return replace(here, session_id=values["session_id"], counts_of_it=Tally(), seq=0)
        if kind == "end":
            return replace(
                here,
                conversations=self.conversations + 1,
                counts=self.counts + self.counts_of_it,
                session_id=None,
            )
        if kind in _ONE:
            here = replace(here, counts_of_it=self.counts_of_it + _ONE[kind])
        return replace(here, seq=values["seq"]) if kind == "message" else here


@dataclass
class Pen:
    """Seals one line after the other."""

    place: Place = Place()

    def write(self, values: Line) -> bytes:
        body = body_of(values)
        line_hash = line_hash_of(body, previous=self.place.line_hash)
        self.place = self.place.behind(values, line_hash)
        return line_of(body, line_hash)
