from django.apps import AppConfig


class IntegrityConfig(AppConfig):
    name = "integrity"

    def ready(self) -> None:
        from integrity import receivers  # noqa: F401 (connects them)
