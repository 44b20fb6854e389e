"""Memory across conversations: session, arc and epoch summaries of a project."""
