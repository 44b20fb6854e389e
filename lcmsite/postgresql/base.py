"""Django's PostgreSQL backend, whose pool knows a dead connection without asking the server at every request."""

from __future__ import annotations

import select
import time
from typing import Any, ClassVar

from django.conf import settings
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool, PoolTimeout

from lcmsite.ops.metrics.faces import POOL_EMPTY, POOL_WAIT
from lcmsite.postgresql.moments import with_quick_moments


class WarmestFirst(ConnectionPool[Any]):
    """Gives out the connection that came back last: its process at the server still has everything at hand.

    psycopg's own gives the one that has rested longest. Whoever asks one thing after the other goes round them all
    there, and with four, a small append over HTTP takes an eighth longer.
    """

    def _get_ready_connection(self, timeout: float | None) -> Any:
        # Those that lie idle stand in the order in which they came back, and the first is taken.
        self._pool.rotate(1)
        return super()._get_ready_connection(timeout)


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes a connection from the pool as Django does, and looks whether it was cut while nobody used it.

    Django's own way (CONN_HEALTH_CHECKS) is a round trip to the server for each request, as long as a small query.
    """

    _connection_pools: ClassVar[dict[str, Any]]  # which its stubs leave out

    @property
    def pool(self) -> Any:
        """Asked for seven times a request: what it is made from is looked at when it is made."""
        return self._connection_pools.get(self.alias) or self._made_pool()

    def _made_pool(self) -> ConnectionPool[Any] | None:
        """As Django makes it, but for the order in which its connections are given out."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        parameters = self.get_connection_params() | {"autocommit": True}
        configure = self._configure_connection  # type: ignore[attr-defined]  # its stubs leave it out
        pool = WarmestFirst(kwargs=parameters, open=False, configure=configure, **options)
        # Of two threads that come here at once, one makes that of both.
        return self._connection_pools.setdefault(self.alias, pool)

    def get_connection_params(self) -> dict[str, Any]:
        params = super().get_connection_params()
        params["context"] = with_quick_moments(params["context"])
        return params

    # Whether the last connection went back as a request should leave it.
    _is_at_rest = False

    def connect(self) -> None:
        """Take a connection; behind one that left all in order, nothing need be set.

        Django sets a dozen things with each, and looks at them before it gives it back: of what HTTP adds to a small
        append, a thirtieth.
        """
        is_at_rest, self._is_at_rest = self._is_at_rest, False
        if is_at_rest:
            self.connection = self.get_new_connection({})
            self._set_autocommit(True)
        else:
            super().connect()

    def close_if_unusable_or_obsolete(self) -> None:
        """Give the connection back, as each request does in the end; the pool itself looks whether it still works."""
        self._is_at_rest = self.pool is not None and self.connection is not None and self.autocommit
        if self._is_at_rest:
            self._close()  # type: ignore[attr-defined]  # its stubs leave it out
        else:
            super().close_if_unusable_or_obsolete()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = self._taken(conn_params)
        if self.pool is not None and _has_news(connection):
            # Of a restarted server, every connection is dead, not this one alone: all that lie idle are tried.
            self.pool.putconn(connection)
            self.pool.check()
            connection = self._taken(conn_params)
        return connection

    def _set_autocommit(self, autocommit: bool) -> None:
        """Only where it changes: Django sets it with every connection that it takes, and the pool's have it already."""
        if self.connection.autocommit != autocommit:
            super()._set_autocommit(autocommit)  # type: ignore[misc]  # its stubs leave it out

    def _taken(self, conn_params: dict[str, Any]) -> Any:
        """A connection of the pool, or a new one, within LCM_POOL_TIMEOUT_SECONDS.

        The pool itself gives up sooner, and is asked again: each time it tries anew to connect. Left to itself, it
        would try a server that takes no more connections after ever longer delays, while all requests wait.
        """
        began = time.monotonic()
        while True:
            try:
                connection = super().get_new_connection(conn_params)
                break
            except PoolTimeout:
                if time.monotonic() - began >= settings.DEPLOYMENT.pool_timeout_seconds:
                    POOL_EMPTY.add()
                    raise
        POOL_WAIT.add(time.monotonic() - began)
        return connection


def _has_news(connection: Any) -> bool:
    """Whether something has arrived on an idle connection: its end, or the server's word that it is coming."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
