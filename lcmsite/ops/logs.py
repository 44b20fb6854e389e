"""How LCM logs: one JSON object a line, or readable on a terminal. A log never holds the text of a message."""

import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

# Enough of an exception's text to know it by; what follows its first line may quote data.
LONGEST_EXCEPTION_TEXT = 200


def set_up_loggers() -> None:
    """Let our own loggers write through those of Python; once a process, for each keeps what it began with."""
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, complete, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
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
    """Add what every line has: context, logger, level, time, and the traceback of an exception."""
    structlog.contextvars.merge_contextvars(logger, name, event)
    event["logger"] = event["_record"].name if "_record" in event else logger.name
    event["level"] = name
    event["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return discreet_exception(logger, name, event)


def logging_settings(*, level: str, format: str) -> dict[str, Any]:
    """`LOGGING` for Django."""
    readable = format == "console" or (format == "auto" and sys.stderr.isatty())
    renderer = structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer(default=str)
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
            "stderr": {"class": "logging.StreamHandler", "formatter": "lcm"},
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
