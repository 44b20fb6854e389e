"""Django's PostgreSQL backend, whose pool knows a dead connection without asking the server at every request."""
