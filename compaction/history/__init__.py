"""Memory across conversations: session, arc and epoch summaries of a project.

A session summary covers one conversation, an arc some sessions of a project, an epoch some arcs.
"""
