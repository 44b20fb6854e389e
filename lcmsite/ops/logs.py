"""Logging: JSON lines or readable ones, never the text of a message."""

import logging
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import structlog
from structlog.typing import ExcInfo, Processor

from conversations.errors import Unavailable
from lcmsite.embedded_postgres.location import make_directory

# Maximum number of characters logged of an exception's first line; later lines may quote data.
LONGEST_EXCEPTION_TEXT = 200

# The log of `lcm up`.
LOG_FILE_NAME = "lcm.log"
# Above this size, the log is copied to `lcm.log.1` and emptied.
MOST_BYTES = 64 * 1024**2
SHOWN_LINES = 60


def _discreet(exc_info: ExcInfo) -> str:
    """Traceback, type and first line of an exception; the rest may quote data."""
    return "".join(_describe_exception(exc_info[1]))


def _describe_exception(error: BaseException) -> Iterator[str]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _describe_exception(cause)
        yield "which led to:\n"
    yield from traceback.format_tb(error.__traceback__)
    first_line = next(iter(str(error).splitlines()), "")[:LONGEST_EXCEPTION_TEXT]
    yield f"{type(error).__module__}.{type(error).__qualname__}: {first_line}\n"


discreet_exception = structlog.processors.ExceptionRenderer(_discreet)

# The processors of every log line, of structlog and of the standard library.
PROCESSORS: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    discreet_exception,
)


def set_up_loggers() -> None:
    """Route structlog through Python's logging, once in a process."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def log_what_python_prints() -> None:
    """Log warnings and uncaught exceptions, which Python would print as text."""
    logging.captureWarnings(True)
    logger = logging.getLogger("python")

    def uncaught(kind: type[BaseException], error: BaseException | None, *_: Any) -> None:
        # Ctrl-C is not a failure.
        if not issubclass(kind, KeyboardInterrupt):
            logger.critical("uncaught_exception", exc_info=error)

    sys.excepthook = uncaught
    threading.excepthook = lambda failure: uncaught(failure.exc_type, failure.exc_value)
    sys.unraisablehook = lambda failure: uncaught(failure.exc_type, failure.exc_value)


def logging_settings(*, level: str, format: str) -> dict[str, Any]:
    """Build Django's `LOGGING` setting."""
    readable = format == "console" or (format == "auto" and sys.stderr.isatty())
    renderer = structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer(default=str)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lcm": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
                "foreign_pre_chain": PROCESSORS,
            }
        },
        "filters": {"once_per_outage": {"()": "lcmsite.ops.outages.OncePerOutage"}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "lcm"},
            "queues": {"class": "logging.StreamHandler", "formatter": "lcm", "filters": ["once_per_outage"]},
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Removes Django's own handlers, which would log everything a second time.
            "django": {"handlers": [], "level": level, "propagate": True},
            # RequestLog already logs refused requests.
            "django.request": {"level": "ERROR"},
            # Anybody can send a request with another host's name: RequestLog has a line for it, without a traceback.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            # At DEBUG, these would log statements and requests with their values; some would log every call at INFO.
            "django.db.backends": {"level": "WARNING"},
            "asyncio": {"level": "WARNING"},
            # The pool repeats warnings about a failure that the waiting request logs once.
            "psycopg.pool": {"level": "ERROR"},
            "mcp": {"level": "WARNING"},
            "sse_starlette": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            "httpcore2": {"level": "WARNING"},
            # It has its own handler, because huey's consumer adds one to a logger that has none. At INFO, huey
            # logs two lines for every task; LCM's tasks log more useful ones.
            "huey": {"handlers": ["queues"], "level": level if level != "INFO" else "WARNING", "propagate": False},
        },
    }


@contextmanager
def log_file(data_dir: Path) -> Iterator[TextIO]:
    """Open the log file, and send this process's log to it within the block.

    Raises Unavailable if the data directory cannot be written.
    """
    path = data_dir / LOG_FILE_NAME
    try:
        make_directory(data_dir)
        path.touch(mode=0o600)
    except OSError as refusal:
        raise Unavailable(f"The log {path} cannot be written: {refusal.strerror}.") from refusal
    with path.open("a", encoding="utf-8") as log:
        handlers = [each for each in logging.root.handlers if isinstance(each, logging.StreamHandler)]
        streams = [each.setStream(log) for each in handlers]
        try:
            yield log
        finally:
            for handler, stream in zip(handlers, streams, strict=True):
                if stream is not None:
                    handler.setStream(stream)


def rotate(log: TextIO) -> None:
    """Copy and truncate a log that is too long; other processes keep appending to it."""
    with suppress(OSError):
        if os.fstat(log.fileno()).st_size > MOST_BYTES:
            shutil.copyfile(log.name, f"{log.name}.1")
            os.truncate(log.name, 0)


def tail(log: TextIO, *, since: int) -> str:
    """The last lines that were written after this position."""
    with Path(log.name).open(encoding="utf-8", errors="replace") as written:
        written.seek(since)
        return "".join(written.readlines()[-SHOWN_LINES:])
