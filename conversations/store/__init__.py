"""The store: conversations, their messages, summaries and active context."""
