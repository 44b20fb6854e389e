"""Django's PostgreSQL backend; keeps the embedded server running while in use.

Django loads it for `"ENGINE": "lcmsite.embedded_postgres"`; the setting `EMBEDDED` beside it holds the fields of
`EmbeddedPostgres`.
"""

import logging
from typing import Any

from django.db import OperationalError
from django_prometheus.db.backends.postgresql import base

from lcmsite.embedded_postgres.lease import LEASES, EmbeddedPostgres
from lcmsite.embedded_postgres.location import EmbeddedPostgresError

logger = logging.getLogger(__name__)


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes the process's lease on the server before its first connection."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        server = self.settings_dict["EMBEDDED"]
        if server["data_dir"] not in LEASES:
            ours = EmbeddedPostgres(**server)
            try:
                is_running = ours.location.keeper_lock.exists() and ours.has_keeper()
                ours.hold()
            except (EmbeddedPostgresError, OSError) as refusal:
                raise OperationalError(str(refusal)) from refusal
            # While `lcm up` runs, the server does, too. A command that starts it may lack the settings of its site.
            if not is_running:
                logger.warning("Started LCM's own PostgreSQL in %s: no LCM_DATABASE_URL is set.", server["data_dir"])
        return super().get_new_connection(conn_params)
