"""Django's PostgreSQL backend; keeps the server running and the pool working.

Django loads it for `"ENGINE": "lcmsite.database_backend"`. For LCM's own server, the setting `EMBEDDED` beside it holds
the fields of `EmbeddedPostgres`.
"""

import logging
from typing import Any

from django.db import OperationalError
from django_prometheus.db.backends.postgresql import base
from psycopg_pool import PoolTimeout

from lcmsite.embedded_postgres.lease import LEASES, EmbeddedPostgres
from lcmsite.embedded_postgres.location import EmbeddedPostgresError

logger = logging.getLogger(__name__)


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes the lease on LCM's own server; checks the pool after a timeout."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if server := self.settings_dict.get("EMBEDDED"):
            _hold(server)
        try:
            return super().get_new_connection(conn_params)
        except PoolTimeout:
            # After a restart of the server, all idle connections are broken. The pool finds them one by one, with a
            # growing pause: without this check, several requests in a row would time out.
            self.pool.check()
            raise


def _hold(server: dict[str, Any]) -> None:
    """Take the process's lease on LCM's own server; start it if it is not running."""
    if server["data_dir"] in LEASES:
        return
    ours = EmbeddedPostgres(**server)
    try:
        is_running = ours.location.keeper_lock.exists() and ours.has_keeper()
        ours.hold()
    except (EmbeddedPostgresError, OSError) as refusal:
        raise OperationalError(str(refusal)) from refusal
    # While `lcm up` runs, the server does, too. A command that starts it may lack the settings of its site.
    if not is_running:
        logger.warning("Started LCM's own PostgreSQL in %s: no LCM_DATABASE_URL is set.", server["data_dir"])
