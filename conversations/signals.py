"""What the store tells others, inside the transaction that did it."""

from django.dispatch import Signal

# sender=ConversationStore, conversation_id: int, messages: tuple[AppendedMessage, ...],
# counters: Counters as they are now, overrides: dict[str, Any]
messages_appended = Signal(use_caching=True)
