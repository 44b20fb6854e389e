from conversations.store.conversations import ConversationStore

__all__ = ["ConversationStore"]
