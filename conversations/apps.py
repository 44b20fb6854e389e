from django.apps import AppConfig
from django.db.models.signals import pre_migrate


class ConversationsConfig(AppConfig):
    name = "conversations"
    verbose_name = "Conversations"

    def ready(self) -> None:
        from conversations.run_sql import refuse_other_migrations

        pre_migrate.connect(refuse_other_migrations, sender=self)
