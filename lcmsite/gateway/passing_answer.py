"""Read an answer beside its way to the client."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

import structlog

from lcmsite.gateway.decoding import Decoder, decoder
from lcmsite.gateway.forwarding import Watched
from lcmsite.gateway.recording.exchange import Exchange, Outcome
from lcmsite.gateway.surfaces_answer import AnswerReader

logger = structlog.get_logger(__name__)

MOST_ERROR_BYTES = 64 * 1024


@dataclass
class PassingAnswer:
    """Reads the answer beside its way to the client."""

    exchange: Exchange
    began: float
    reader: AnswerReader | None = None
    unpacking: Decoder | None = None
    error_body: bytearray = field(default_factory=bytearray)
    has_failed: bool = False
    watched: Watched = field(init=False)

    def __post_init__(self) -> None:
        self.watched = Watched(self.take)

    def take(self, piece: bytes) -> None:
        """Read a piece that has been forwarded; what cannot be read is not recorded."""
        if self.has_failed:
            return
        try:
            self._take(piece)
        except Exception as error:
            self.has_failed = True
            logger.warning("gateway_answer_not_read", reason=type(error).__name__)

    def _take(self, piece: bytes) -> None:
        assert self.watched.status is not None
        if self.unpacking is None:
            self.unpacking = decoder(self.watched.headers.get("content-encoding", ""))
        data = self.unpacking.decompress(piece)
        if not 200 <= self.watched.status < 300:
            self.error_body += data[: MOST_ERROR_BYTES - len(self.error_body)]
            return
        if self.reader is None:
            is_stream = self.watched.headers.get("content-type", "").startswith("text/event-stream")
            self.reader = AnswerReader(self.exchange.surface, is_stream)
        self.reader.feed(data)

    def outcome(self) -> Outcome:
        """What became of the request, as far as the answer came."""
        watched = self.watched
        milliseconds = int((time.monotonic() - self.began) * 1000)
        if self.reader is None or self.has_failed:
            error = _error_in(bytes(self.error_body)) or ("" if watched.status else "no_answer")
            return Outcome(watched.status, milliseconds, error)
        try:
            return Outcome(watched.status, milliseconds, answer=self.reader.finish())
        except Exception as error:
            # A whole answer that was cut off before its end is none.
            return Outcome(watched.status, milliseconds, f"unreadable: {type(error).__name__}")


def _error_in(body: bytes) -> str:
    """The vendor's word for what went wrong."""
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError):
        return ""
    words = [error.get("type"), error.get("code")] if isinstance(error, dict) else [error]
    return next((word[:100] for word in words if isinstance(word, str)), "")
