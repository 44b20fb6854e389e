"""Signals of the store, sent inside the transaction of the change."""

from django.dispatch import Signal

# sender=ConversationStore, conversation_id: int, messages: tuple[AppendedMessage, ...],
# counters: Counters as they are now, overrides: dict[str, Any]
messages_appended = Signal(use_caching=True)
