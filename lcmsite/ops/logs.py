"""How LCM logs: one JSON object a line, or readable on a terminal. A log never holds the text of a message."""

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

from lcmsite.startup import without

# For tracebacks in colour, which no line of ours has, and for other threads than Python's.
with without("rich", "greenlet"):
    import structlog
    from structlog.typing import EventDict, Processor, WrappedLogger

# Enough of an exception's text to know it by; what follows its first line may quote data.
LONGEST_EXCEPTION_TEXT = 200


def set_up_loggers() -> None:
    """Let our own loggers write through those of Python; once a process, for each keeps what it began with."""
    # What no line of ours says need not be found out for each of them: the place in the code, above all.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, complete, _hand_over],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def log_what_python_prints() -> None:
    """Make log lines of warnings and of exceptions that nobody caught, which Python prints as plain text."""
    logging.captureWarnings(True)
    logger = logging.getLogger("python")

    def uncaught(kind: type[BaseException], error: BaseException | None, *_: Any) -> None:
        # Ctrl-C is no failure.
        if not issubclass(kind, KeyboardInterrupt):
            logger.critical("uncaught_exception", exc_info=error)

    sys.excepthook = uncaught
    threading.excepthook = lambda failure: uncaught(failure.exc_type, failure.exc_value)
    sys.unraisablehook = lambda failure: uncaught(failure.exc_type, failure.exc_value)


def complete(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """What every line says, whoever logs it; all at once, as a chain of structlog's own takes twice as long."""
    structlog.contextvars.merge_contextvars(logger, name, event)
    event["logger"] = event["_record"].name if "_record" in event else logger.name
    event["level"] = name
    event["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return discreet_exception(logger, name, event)


def _hand_over(logger: WrappedLogger, name: str, event: EventDict) -> Any:
    """A complete event, written at once where our own handler is all that listens; a record for Python's otherwise.

    To make the record and to have it passed on takes longer than all the rest of a line, and each request has one.
    """
    handlers = logging.root.handlers
    if len(handlers) == 1 and isinstance(handlers[0], Stderr) and handlers[0].has_written(name, event):
        raise structlog.DropEvent
    return structlog.stdlib.ProcessorFormatter.wrap_for_formatter(logger, name, event)


class Stderr(logging.StreamHandler[TextIO]):
    """Standard error, for lines of whoever logs, and for complete events of our own."""

    def __init__(self, *, renderer: Processor) -> None:
        super().__init__()
        self.renderer = renderer

    def has_written(self, name: str, event: EventDict) -> bool:
        """Write the event; False if that fails, which Python's way then meets again and deals with."""
        try:
            line = str(self.renderer(None, name, {**event}))
            with self.lock or nullcontext():
                self.stream.write(line + self.terminator)
                self.stream.flush()
        except Exception:
            return False
        return True


def logging_settings(*, level: str, format: str) -> dict[str, Any]:
    """`LOGGING` for Django."""
    readable = format == "console" or (format == "auto" and sys.stderr.isatty())
    renderer = structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer(_as_json, default=str)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lcm": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
                "foreign_pre_chain": [complete],
            }
        },
        "filters": {"once_per_outage": {"()": "lcmsite.ops.outages.OncePerOutage"}},
        "handlers": {
            "stderr": {"()": Stderr, "formatter": "lcm", "renderer": renderer},
            "queues": {"class": "logging.StreamHandler", "formatter": "lcm", "filters": ["once_per_outage"]},
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Takes away Django's own handlers, which would log everything a second time.
            "django": {"handlers": [], "level": level, "propagate": True},
            # A refusal is said by the request's own line already.
            "django.request": {"level": "ERROR"},
            # At DEBUG these would log statements and requests with their values; one of them, at INFO, every call.
            "django.db.backends": {"level": "WARNING"},
            "asyncio": {"level": "WARNING"},
            # Its warnings say again and again what whoever waits for a connection will say once.
            "psycopg.pool": {"level": "ERROR"},
            "mcp": {"level": "WARNING"},
            "sse_starlette": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            "httpcore2": {"level": "WARNING"},
            # With a handler of its own, as huey's consumer adds one to a logger that has none. At INFO it
            # says two lines for every task, which our own tasks say better.
            "huey": {"handlers": ["queues"], "level": level if level != "INFO" else "WARNING", "propagate": False},
        },
    }


def _as_json(event: EventDict, *, default: Callable[[Any], str]) -> str:
    """The event in ASCII, whatever a terminal can show; nearly all are, and are written in a third of the time."""
    try:
        line = orjson.dumps(event, default)
        if line.isascii():
            return line.decode()
    except TypeError:
        pass
    return json.dumps(event, default=default)


def discreet_exception(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Where it happened and what kind it was: an exception's text may quote the data it stumbled over."""
    exc_info = event.pop("exc_info", None)
    if exc_info is True:
        exc_info = sys.exc_info()
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if isinstance(error, BaseException):
        event["exception"] = "".join(_lines(error))
    return event


def _lines(error: BaseException) -> Iterator[str]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _lines(cause)
        yield "which led to:\n"
    yield from traceback.format_tb(error.__traceback__)
    first_line = next(iter(str(error).splitlines()), "")[:LONGEST_EXCEPTION_TEXT]
    yield f"{type(error).__module__}.{type(error).__qualname__}: {first_line}\n"
