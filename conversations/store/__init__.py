"""Services of the store: conversations, messages, summaries, active context."""
