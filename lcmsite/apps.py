from django.apps import AppConfig
from prometheus_client import disable_created_metrics


class SiteConfig(AppConfig):
    """The site: settings, queues, checks and all interfaces; no domain rules."""

    name = "lcmsite"
    verbose_name = "LCM site"

    def ready(self) -> None:
        from lcmsite.ops import checks  # noqa: F401  (registers the system checks)

        # The `_created` series are meaningless across several processes, and no alert uses them.
        disable_created_metrics()
