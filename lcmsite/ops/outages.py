"""Log an outage of a queue's server as its start, its reasons and its end.

Without this, the queue's loop would log a traceback at every attempt during the outage. No work is lost meanwhile: jobs
are rows in the database, and the loop goes on trying.
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

SECONDS_BETWEEN_TRIES = 0.5
_DISK_FULL = "53100"


class OncePerOutage(logging.Filter):
    """Replaces the log records of an outage by its start, reasons and end."""

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
            threading.Thread(target=self._wait_for_recovery, daemon=True).start()
        return False

    def _wait_for_recovery(self) -> None:
        # Imported here: these modules need the settings, which set up logging.
        from conversations.errors import LcmError
        from lcmsite.connections import require_servers

        # Threads notice their broken connections one by one, the last one when its wait for the pool times out.
        seconds_of_quiet = settings.DEPLOYMENT.pool_timeout_seconds + 1.0
        reason = ""
        while True:
            time.sleep(SECONDS_BETWEEN_TRIES)
            try:
                require_servers(with_our_own=True)
            except LcmError as refusal:
                if refusal.detail != reason:
                    reason = refusal.detail
                    logger.error("server_unavailable", reason=reason)
                continue
            with self._changing:
                if time.monotonic() - self._failed_at >= seconds_of_quiet:
                    self._is_out = False
                    break
        logger.info("queue_answers_again")


def is_outage(error: BaseException) -> bool:
    """Whether the error means that a server cannot be reached or written to."""
    # Imported here: every process sets up logging, and few of them need the client.
    import redis

    if isinstance(error, Error) and error.__cause__ is not None:
        error = error.__cause__
    match error:
        case redis.ConnectionError() | redis.TimeoutError():
            return True
        case psycopg.OperationalError() | psycopg.InterfaceError():
            # No SQLSTATE: the server did not respond. 08: connection failures. 57P: the server is stopping or starting.
            return error.sqlstate is None or error.sqlstate.startswith(("08", "57P", _DISK_FULL))
        case psycopg.errors.ReadOnlySqlTransaction():
            # LCM's embedded PostgreSQL becomes read-only when its disk is nearly full.
            return True
    return False
