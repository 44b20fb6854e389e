from django.apps import AppConfig


class IntegrityConfig(AppConfig):
    name = "integrity"

    def ready(self) -> None:
        from integrity import tasks  # noqa: F401 (connects the receiver)
