"""Django's PostgreSQL backend, which starts the embedded server when a process first needs it."""
