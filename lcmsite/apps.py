from django.apps import AppConfig
from prometheus_client import disable_created_metrics


class SiteConfig(AppConfig):
    """The site: queues, settings, checks and every outward face; no domain rules."""

    name = "lcmsite"
    verbose_name = "LCM site"

    def ready(self) -> None:
        from lcmsite.ops import checks  # noqa: F401  (registers the system checks)

        # The `_created` series: meaningless across several processes, and used by no alert.
        disable_created_metrics()
