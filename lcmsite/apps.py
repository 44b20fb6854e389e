from django.apps import AppConfig


class SiteConfig(AppConfig):
    """The site that wires the rooms: it holds the queue's tables and the checks, and no rule of the domain."""

    name = "lcmsite"
    verbose_name = "LCM site"

    def ready(self) -> None:
        from lcmsite.ops import checks  # noqa: F401  (registers the system checks)
        from lcmsite.ops.metrics.directory import shared_directory

        if shared_directory() is not None:
            # One of the processes of `lcm up`, or of an operator who runs them in another way.
            from lcmsite.ops.metrics.counting import start_counting

            start_counting()
