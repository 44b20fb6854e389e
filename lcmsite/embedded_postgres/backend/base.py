"""Django's PostgreSQL backend with a lease: a process that connects keeps the embedded server up until it ends."""

from typing import Any

from django.db import OperationalError
from django_prometheus.db.backends.postgresql import base

from lcmsite.connections import own_database
from lcmsite.embedded_postgres.location import EmbeddedPostgresError


class DatabaseWrapper(base.DatabaseWrapper):
    """Connects to the server of `settings.DATA_DIR`."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        try:
            own_database().hold()
        except (EmbeddedPostgresError, OSError) as refusal:
            raise OperationalError(str(refusal)) from refusal
        return super().get_new_connection(conn_params)
