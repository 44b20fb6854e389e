"""Log one line when a queue's server stops answering, one when it is back.

Its queue's own loop would log a traceback at every attempt, for as long as that takes. Nothing is lost meanwhile: the
jobs are rows, and the loop goes on trying.
"""

from __future__ import annotations

import logging
import threading
import time

import psycopg
import structlog
from django.conf import settings
from django.db import Error

logger = structlog.get_logger(__name__)

SECONDS_BETWEEN_QUESTIONS = 0.5
_DISK_FULL = "53100"


class OncePerOutage(logging.Filter):
    """Replaces the records of an unreachable server by two lines."""

    def __init__(self) -> None:
        super().__init__()
        self._failed_at = 0.0
        self._is_out = False
        self._changing = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None or not is_outage(error):
            return True
        with self._changing:
            self._failed_at = time.monotonic()
            is_news, self._is_out = not self._is_out, True
        if is_news:
            logger.error("queue_unavailable", error=type(error).__name__)
            threading.Thread(target=self._wait, daemon=True).start()
        return False

    def _wait(self) -> None:
        # Not imported above: settings are made before what these need, and logging is one of them.
        from conversations.errors import LcmError
        from lcmsite.connections import require_servers

        # Each thread finds its broken connection by itself, and one that waits for another gives up only then.
        seconds_of_quiet = settings.DEPLOYMENT.pool_timeout_seconds + 1.0
        while True:
            time.sleep(SECONDS_BETWEEN_QUESTIONS)
            try:
                require_servers(with_our_own=True)
            except LcmError:
                continue
            with self._changing:
                if time.monotonic() - self._failed_at >= seconds_of_quiet:
                    self._is_out = False
                    break
        logger.info("queue_answers_again")


def is_outage(error: BaseException) -> bool:
    """Whether the error means that a server cannot be reached or written to."""
    # Not imported above: every process sets up its logging, and few of them ever need this.
    import redis

    if isinstance(error, Error) and error.__cause__ is not None:
        error = error.__cause__
    match error:
        case redis.ConnectionError() | redis.TimeoutError():
            return True
        case psycopg.OperationalError() | psycopg.InterfaceError():
            # Without a state the server has said nothing; 08 is a broken connection, 57P a server that goes or comes.
            return error.sqlstate is None or error.sqlstate.startswith(("08", "57P", _DISK_FULL))
        case psycopg.errors.ReadOnlySqlTransaction():
            # How the server that LCM runs itself says that its disk is nearly full.
            return True
    return False
